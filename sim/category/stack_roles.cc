#include "sim/category/stack_roles.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace memreplay {
namespace {

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// What one frame says about an allocation.
struct FrameRole {
  StackPhase phase = StackPhase::kNone;
  bool is_module_call = false;
  bool is_python = false;
  bool is_torch = false;
  bool is_no_grad = false;
  bool starts_backward_thread = false;  // if it is the outermost one
  StackRole more;
};

FrameRole RoleOf(std::string file, std::string_view name) {
  FrameRole role;
  std::replace(file.begin(), file.end(), '\\', '/');  // Windows
  role.is_python = file.ends_with(".py") || file.starts_with('<');
  role.is_torch = Has(file, "/torch/") || file.starts_with("torch/");
  const auto in = [&](std::string_view path) { return role.is_torch && Has(file, path); };
  // C++ frames have only a name.
  if (Has(name, "torch::autograd::Engine::") || Has(name, "torch::autograd::AccumulateGrad") ||
      Has(name, "torch::autograd::generated::") || Has(name, "torch::autograd::Node::operator()")) {
    role.phase = StackPhase::kBackward;
    // Functions of the same namespace record an op under gradients; only the engine runs backward.
    if (!Has(name, "Engine::") && !Has(name, "AccumulateGrad")) role.phase = StackPhase::kNone;
  }
  if (Has(name, "getCurrentCUDABlasHandle") || Has(name, "getCUDABlasLtWorkspace") ||
      Has(name, "getWorkspace") || Has(name, "cudnn::Workspace")) {
    role.more.is_workspace = true;
  }
  if (Has(name, "c10d::") || Has(name, "ProcessGroupNCCL")) role.more.is_communication = true;
  if (in("torch/optim/") || Has(file, "bitsandbytes/optim/") || in("torch/amp/grad_scaler") ||
      in("torch/cuda/amp/grad_scaler") || in("torch/nn/utils/clip_grad")) {
    role.phase = StackPhase::kOptimizer;
    role.more.is_state = name == "_init_group" || name == "init_state" || name == "_init_state" ||
                         name == "get_state_buffer";
    if (name == "zero_grad") role.phase = StackPhase::kNone;
  } else if (in("torch/autograd/graph.py") || in("torch/autograd/__init__.py")) {
    if (name == "backward" || name == "grad" || name == "_engine_run_backward" ||
        name == "_make_grads") {
      role.phase = StackPhase::kBackward;
    }
  } else if (in("torch/utils/checkpoint.py")) {
    if (name == "backward" || name == "unpack_hook" || name == "recompute_fn" ||
        name == "inner_unpack" || name == "unpack") {
      role.phase = StackPhase::kBackward;
      role.more.is_recomputed = true;
      role.starts_backward_thread = true;
    }
  } else if (in("torch/autograd/function.py")) {
    role.starts_backward_thread = name == "apply";
  } else if (in("torch/_tensor.py") && name == "backward") {
    role.phase = StackPhase::kBackward;
  } else if (in("torch/nn/modules/module.py")) {
    if (name == "_call_impl" || name == "_wrapped_call_impl") {
      role.phase = StackPhase::kForward;
      role.is_module_call = true;
    } else if (name == "_apply" || name == "to" || name == "cuda" || name == "convert" ||
               name == "load_state_dict" || name == "_load_from_state_dict" || name == "half" ||
               name == "bfloat16" || name == "to_empty") {
      role.phase = StackPhase::kLoad;
    }
  } else if ((in("torch/nn/modules/") && (name == "__init__" || name == "reset_parameters")) ||
             name == "from_pretrained" || name == "_load_state_dict_into_meta_model" ||
             name == "set_module_tensor_to_device" || name == "_load_parameter_into_model" ||
             name == "load_state_dict" ||
             (Has(file, "safetensors") && (name == "load_file" || name == "get_tensor"))) {
    role.phase = StackPhase::kLoad;
  } else if (in("torch/utils/_contextlib.py") && name == "decorate_context") {
    role.is_no_grad = true;
  } else if (in("torch/distributed/")) {
    role.more.is_communication = true;
  } else if (in("torch/nn/functional.py") || in("torch/nn/modules/loss.py") ||
             Has(file, "loss_utils") || Has(file, "cross_entropy")) {
    role.more.is_loss = Has(name, "cross_entropy") || Has(name, "nll_loss") ||
                        Has(name, "log_softmax") || Has(name, "mse_loss") ||
                        in("torch/nn/modules/loss.py") || Has(file, "loss_utils") ||
                        Has(file, "cross_entropy");
  }
  if (in("torch/nn/modules/linear.py") || in("torch/nn/modules/conv.py") ||
      (in("torch/nn/functional.py") &&
       (name == "linear" || name == "multi_head_attention_forward"))) {
    role.more.is_linear = true;
  }
  if (Has(file, "cache_utils.py") || Has(file, "kv_cache") || Has(name, "allocate_kv_cache") ||
      Has(file, "mem_cache/memory_pool")) {
    role.more.is_cache = true;
  }
  return role;
}

}  // namespace

std::vector<StackRole> StackRoles(const Trace& trace) {
  std::vector<FrameRole> frames;
  frames.reserve(trace.stacks.frame_count());
  for (size_t i = 0; i < trace.stacks.frame_count(); ++i) {
    const Frame& frame = trace.stacks.frame(static_cast<uint32_t>(i));
    frames.push_back(RoleOf(std::string(trace.strings[frame.filename]), trace.strings[frame.name]));
  }
  std::vector<StackRole> roles(trace.stacks.size());
  for (size_t stack = 0; stack < roles.size(); ++stack) {
    StackRole& role = roles[stack];
    const absl::Span<const uint32_t> list = trace.stacks[static_cast<uint32_t>(stack)];
    if (list.empty()) {
      role.phase = StackPhase::kEmpty;
      continue;
    }
    bool is_no_grad = false, is_backward = false, wants_caller = false;
    size_t python_frames = 0;
    for (const uint32_t index : list) {
      const FrameRole& frame = frames[index];
      python_frames += frame.is_python ? 1 : 0;
      // The innermost frame says most, but a forward that recomputes is in backward, and loading
      // calls modules.
      if (role.phase == StackPhase::kNone) role.phase = frame.phase;
      is_backward = is_backward || frame.phase == StackPhase::kBackward;
      is_no_grad = is_no_grad || frame.is_no_grad;
      // What an optimizer calls is under torch.enable_grad(), which has the same decorator.
      if (frame.phase == StackPhase::kOptimizer) is_no_grad = false;
      role.is_state = role.is_state || frame.more.is_state;
      role.is_recomputed = role.is_recomputed || frame.more.is_recomputed;
      role.is_loss = role.is_loss || frame.more.is_loss;
      role.is_linear = role.is_linear || (python_frames <= 2 && frame.more.is_linear);
      role.is_cache = role.is_cache || frame.more.is_cache;
      role.is_workspace = role.is_workspace || frame.more.is_workspace;
      role.is_communication = role.is_communication || frame.more.is_communication;
      if (frame.is_module_call) {
        wants_caller = true;
        role.caller = index + 1;
      } else if (wants_caller && frame.is_python) {
        wants_caller = false;
        role.caller = index + 1;
      }
    }
    if (is_backward || frames[list.back()].starts_backward_thread) {
      role.is_recomputed = role.is_recomputed || role.phase == StackPhase::kForward;
      role.phase = StackPhase::kBackward;
    } else if (role.phase == StackPhase::kForward && is_no_grad) {
      role.phase = StackPhase::kInference;
    }
  }
  return roles;
}

}  // namespace memreplay
