#include "hardware/cards.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace memreplay {
namespace {

// One block may use the memory of a multiprocessor less the 1 KiB that the system keeps.
constexpr Capability kCapabilities[] = {
    {60, 2048, 32, 65536, 49152, 128, 0, 3},       {61, 2048, 32, 98304, 49152, 256, 0, 3},
    {70, 2048, 32, 98304, 98304, 128, 1024, 3},    {75, 1024, 16, 65536, 65536, 128, 1024, 3},
    {80, 2048, 32, 167936, 166912, 128, 2048, 4},  {86, 1536, 16, 102400, 101376, 256, 1024, 4},
    {87, 1536, 16, 167936, 166912, 256, 2048, 4},  {89, 1536, 24, 102400, 101376, 256, 1024, 4},
    {90, 2048, 32, 233472, 232448, 256, 4096, 5},  {100, 2048, 32, 233472, 232448, 256, 8192, 5},
    {103, 2048, 32, 233472, 232448, 256, 8192, 5}, {120, 1536, 32, 102400, 101376, 256, 1024, 5},
    {121, 1536, 32, 102400, 101376, 256, 1024, 5},
};

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

struct Row {
  const char* name;
  const char* title;
  const char* group;
  int capability;
  uint64_t linux_memory, windows_memory;
  bool is_nominal;
  int multiprocessors, l2_kib, clock_mhz, memory_clock_mhz, memory_bus_bits;
  const char* source;  // of the memory
};

// Sources of the memory figures:
//   * "deviceQuery": the published output of NVIDIA's sample of this name, to the byte.
//   * "log of Ultralytics", "of YOLOv5": the name and total_memory of
//     torch.cuda.get_device_properties, to the MiB, that these programs print when they start. The
//     year is that of the release.
//   * "nvidia-smi": its figure is above CUDA's total on Linux and equal to it on Windows.
// The total of one GPU differs by some tens of MiB between drivers; each row has the newest
// published figure. GPUs with GDDR6 have about six per cent less when ECC is on.
constexpr Row kRows[] = {
    // GeForce GTX 10 and 16
    {"gtx-1050-ti", "NVIDIA GeForce GTX 1050 Ti", "GeForce GTX 10 and 16", 61, 0, 4096 * kMiB,
     false, 6, 1024, 1392, 3504, 128, "Windows: log of Ultralytics 8.0.230 (2024)"},
    {"gtx-1060-6gb", "NVIDIA GeForce GTX 1060 6GB", "GeForce GTX 10 and 16", 61, 6063 * kMiB, 0,
     false, 10, 1536, 1708, 4004, 192, "Linux: log of Ultralytics 8.0.196 with torch 2.6 (2025)"},
    {"gtx-1070", "NVIDIA GeForce GTX 1070", "GeForce GTX 10 and 16", 61, 8504868864, 0, false, 15,
     2048, 1683, 4004, 256, "Linux: deviceQuery, driver for CUDA 9.0 (2017)"},
    {"gtx-1080", "NVIDIA GeForce GTX 1080", "GeForce GTX 10 and 16", 61, 0, 8192 * kMiB, false, 20,
     2048, 1733, 5005, 256, "Windows (WSL): nvidia-smi (2026), driver 582.28"},
    {"gtx-1080-ti", "NVIDIA GeForce GTX 1080 Ti", "GeForce GTX 10 and 16", 61, 11172 * kMiB,
     11264 * kMiB, false, 28, 2816, 1582, 5505, 352,
     "Linux: log of Ultralytics 8.3.36 (2024); Windows: log of Ultralytics 8.0.58 (2023)"},
    {"gtx-1650", "NVIDIA GeForce GTX 1650", "GeForce GTX 10 and 16", 75, 3904 * kMiB, 4096 * kMiB,
     false, 14, 1024, 1665, 4001, 128,
     "Linux: log of YOLOv5 of 2023-01-31 (2023); Windows: log of Ultralytics 8.0.202 (2023)"},
    {"gtx-1650-super", "NVIDIA GeForce GTX 1650 SUPER", "GeForce GTX 10 and 16", 75, 0, 4096 * kMiB,
     false, 20, 1024, 1725, 6001, 128,
     "Windows: log of Ultralytics 8.0.221 (2023), github.com/SunOner/sunone_aimbot/issues/36"},
    {"gtx-1660-ti-max-q", "NVIDIA GeForce GTX 1660 Ti with Max-Q Design", "GeForce GTX 10 and 16",
     75, 5945 * kMiB, 0, false, 24, 1536, 1335, 6001, 192, "Linux: log of YOLOv5 6.2 (2022)"},
    // GeForce RTX 20
    {"rtx-2060", "NVIDIA GeForce RTX 2060", "GeForce RTX 20", 75, 0, 6144 * kMiB, false, 30, 3072,
     1680, 7001, 192, "Windows: log of Ultralytics 8.3.31 (2024)"},
    {"rtx-2060-max-q", "NVIDIA GeForce RTX 2060 with Max-Q Design", "GeForce RTX 20", 75,
     5918 * kMiB, 0, false, 30, 3072, 1185, 5501, 192, "Linux: log of YOLOv5, torch 1.12 (2022)"},
    {"rtx-2060-super", "NVIDIA GeForce RTX 2060 SUPER", "GeForce RTX 20", 75, 8352038912, 0, false,
     34, 4096, 1650, 7001, 256, "Linux: deviceQuery, driver for CUDA 13.0 (2025)"},
    {"rtx-2070-max-q", "NVIDIA GeForce RTX 2070 with Max-Q Design", "GeForce RTX 20", 75, 0,
     8192 * kMiB, false, 36, 4096, 1185, 6001, 256,
     "Windows (WSL): log of Ultralytics 8.3.49 (2024)"},
    {"rtx-2070-super", "NVIDIA GeForce RTX 2070 SUPER", "GeForce RTX 20", 75, 0, 8192 * kMiB, false,
     40, 4096, 1770, 7001, 256, "Windows: log of YOLOv5 of 2024-06-05 (2024)"},
    {"rtx-2080-super", "NVIDIA GeForce RTX 2080 SUPER", "GeForce RTX 20", 75, 7982 * kMiB,
     8192 * kMiB, false, 48, 4096, 1815, 7751, 256,
     "Linux: log of YOLOv5 7.0 (2023); Windows: training log, CUDA 12.4 (2024)"},
    {"rtx-2080-ti", "NVIDIA GeForce RTX 2080 Ti", "GeForce RTX 20", 75, 11012 * kMiB, 11810832384,
     false, 68, 5632, 1545, 7000, 352,
     "Linux: log of Ultralytics 8.3.75 (2025); Windows: deviceQuery, driver for CUDA 12.1 (2023)"},
    // GeForce RTX 30
    {"rtx-3060", "NVIDIA GeForce RTX 3060", "GeForce RTX 30", 86, 12626493440, 12288 * kMiB, false,
     28, 2304, 1867, 7501, 192,
     "Linux: deviceQuery, driver for CUDA 12.1; Windows: log of Ultralytics 8.0.200 (2023)"},
    {"rtx-3060-ti", "NVIDIA GeForce RTX 3060 Ti", "GeForce RTX 30", 86, 7833 * kMiB, 8192 * kMiB,
     false, 38, 4096, 1665, 7001, 256,
     "Linux: log of Ultralytics 8.4.48 (2026); Windows (WSL): log of Ultralytics 8.4.14 (2026)"},
    {"rtx-3070", "NVIDIA GeForce RTX 3070", "GeForce RTX 30", 86, 7842 * kMiB, 8192 * kMiB, false,
     46, 4096, 1725, 7001, 256,
     "Linux: log of Ultralytics 8.4.11 (2026); Windows: log of Ultralytics 8.3.94 (2025)"},
    {"rtx-3070-ti", "NVIDIA GeForce RTX 3070 Ti", "GeForce RTX 30", 86, 0, 8192 * kMiB, false, 48,
     4096, 1770, 9501, 256, "Windows: log of Ultralytics 8.4.104 (2026)"},
    {"rtx-3080", "NVIDIA GeForce RTX 3080", "GeForce RTX 30", 86, 10002 * kMiB, 10240 * kMiB, false,
     68, 5120, 1710, 9501, 320,
     "Linux: log of Ultralytics 8.4.35 (2026); Windows: log of Ultralytics 8.4.7 (2026)"},
    {"rtx-3080-ti", "NVIDIA GeForce RTX 3080 Ti", "GeForce RTX 30", 86, 12489195520, 0, false, 80,
     6144, 1665, 9501, 384, "Linux: training log, 11910.625 MiB (2026)"},
    {"rtx-3090", "NVIDIA GeForce RTX 3090", "GeForce RTX 30", 86, 25443893248, 0, false, 82, 6144,
     1695, 9751, 384, "Linux: deviceQuery, driver for CUDA 11.8"},
    {"rtx-3090-ti", "NVIDIA GeForce RTX 3090 Ti", "GeForce RTX 30", 86, 24110 * kMiB, 0, false, 84,
     6144, 1860, 10501, 384, "Linux: log of Ultralytics 8.3.230 (2025)"},
    // GeForce RTX 40
    {"rtx-4060", "NVIDIA GeForce RTX 4060", "GeForce RTX 40", 89, 7807 * kMiB, 8188 * kMiB, false,
     24, 24576, 2460, 8501, 128,
     "Linux: log of Ultralytics 8.4.75 (2026); Windows: program's log (2026)"},
    {"rtx-4060-ti-8gb", "NVIDIA GeForce RTX 4060 Ti", "GeForce RTX 40", 89, 7806 * kMiB, 0, false,
     34, 32768, 2535, 9001, 128, "Linux: log of Ultralytics 8.4.82 (2026)"},
    {"rtx-4060-ti-16gb", "NVIDIA GeForce RTX 4060 Ti", "GeForce RTX 40", 89, 0, 16380 * kMiB, false,
     34, 32768, 2535, 9001, 128, "Windows: nvidia-smi (2026), driver 610.62"},
    {"rtx-4070", "NVIDIA GeForce RTX 4070", "GeForce RTX 40", 89, 12002 * kMiB, 12282 * kMiB, false,
     46, 36864, 2475, 10501, 192,
     "Linux: log of Ultralytics 8.3.38 (2024); Windows: log of Ultralytics 8.2.93 (2024)"},
    {"rtx-4070-super", "NVIDIA GeForce RTX 4070 SUPER", "GeForce RTX 40", 89, 0, 12282 * kMiB,
     false, 56, 49152, 2475, 10501, 192, "Windows (WSL): log of Ultralytics 8.4.108 (2026)"},
    {"rtx-4070-ti", "NVIDIA GeForce RTX 4070 Ti", "GeForce RTX 40", 89, 12007 * kMiB, 12282 * kMiB,
     false, 60, 49152, 2610, 10501, 192,
     "Linux: log of YOLOv5 of 2023-12-06 (2023); Windows: log of Ultralytics 8.3.189 (2025)"},
    {"rtx-4070-ti-super", "NVIDIA GeForce RTX 4070 Ti SUPER", "GeForce RTX 40", 89, 16069 * kMiB,
     16376 * kMiB, false, 66, 49152, 2610, 10501, 256,
     "Linux: log of Ultralytics 8.0.55 (2024); Windows: log of Ultralytics 8.3.158 (2025)"},
    {"rtx-4080", "NVIDIA GeForce RTX 4080", "GeForce RTX 40", 89, 0, 16376 * kMiB, false, 76, 65536,
     2505, 11201, 256, "Windows: log of Ultralytics 8.3.228 (2025)"},
    {"rtx-4080-super", "NVIDIA GeForce RTX 4080 SUPER", "GeForce RTX 40", 89, 16852844544,
     16376 * kMiB, false, 80, 65536, 2550, 11501, 256,
     "Linux: deviceQuery, driver for CUDA 12.4; Windows: "
     "github.com/ultralytics/ultralytics/issues/20123 (2025)"},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", "GeForce RTX 40", 89, 25386352640, 24564 * kMiB, false,
     128, 73728, 2520, 10501, 384,
     "Linux: deviceQuery, driver for CUDA 12.4; Windows: log of Ultralytics 8.3.53 (2024)"},
    {"rtx-4090-d", "NVIDIA GeForce RTX 4090 D", "GeForce RTX 40", 89, 24111 * kMiB, 0, false, 114,
     73728, 2520, 10501, 384, "Linux: log of Ultralytics 8.3.204 (2025)"},
    // GeForce RTX 50
    {"rtx-5060", "NVIDIA GeForce RTX 5060", "GeForce RTX 50", 120, 0, 8151 * kMiB, false, 30, 32768,
     2497, 14001, 128, "Windows: log of Ultralytics 8.4.102 (2026)"},
    {"rtx-5060-ti-8gb", "NVIDIA GeForce RTX 5060 Ti", "GeForce RTX 50", 120, 0, 8151 * kMiB, false,
     36, 32768, 2572, 14001, 128, "Windows: log of Ultralytics 8.4.86 (2026)"},
    {"rtx-5060-ti-16gb", "NVIDIA GeForce RTX 5060 Ti", "GeForce RTX 50", 120, 15848 * kMiB,
     16311 * kMiB, false, 36, 32768, 2572, 14001, 128,
     "Linux: log of Ultralytics 8.4.63 (2026); Windows: log of Ultralytics 8.4.174 (2026)"},
    {"rtx-5070", "NVIDIA GeForce RTX 5070", "GeForce RTX 50", 120, 0, 12227 * kMiB, false, 48,
     49152, 2512, 14001, 192, "Windows (WSL): log of Ultralytics 8.4.160 (2026)"},
    {"rtx-5070-ti", "NVIDIA GeForce RTX 5070 Ti", "GeForce RTX 50", 120, 0, 16303 * kMiB, false, 70,
     49152, 2452, 14001, 256, "Windows: log of Ultralytics 8.4.21 (2026)"},
    {"rtx-5080", "NVIDIA GeForce RTX 5080", "GeForce RTX 50", 120, 15840 * kMiB, 16303 * kMiB,
     false, 84, 65536, 2617, 15001, 256,
     "Linux: training log (2026); Windows: log of Ultralytics 8.3.218 (2025)"},
    {"rtx-5090", "NVIDIA GeForce RTX 5090", "GeForce RTX 50", 120, 33660534784, 0, false, 170,
     98304, 2407, 14001, 512, "Linux: deviceQuery, driver for CUDA 13.0"},
    // GeForce laptops
    {"rtx-2050-laptop", "NVIDIA GeForce RTX 2050", "GeForce laptops", 86, 0, 4096 * kMiB, false, 16,
     0, 0, 0, 64, "Windows: log of Ultralytics 8.4.32 (2026)"},
    {"rtx-3050-laptop", "NVIDIA GeForce RTX 3050 Laptop GPU", "GeForce laptops", 86, 3762 * kMiB,
     4096 * kMiB, false, 16, 0, 0, 0, 128,
     "Linux: training log (2026); Windows: log of Ultralytics 8.4.21 (2026)"},
    {"rtx-3060-laptop", "NVIDIA GeForce RTX 3060 Laptop GPU", "GeForce laptops", 86, 0, 6144 * kMiB,
     false, 30, 3072, 0, 7001, 192, "Windows: log of Ultralytics 8.3.221 (2025)"},
    {"rtx-3070-laptop", "NVIDIA GeForce RTX 3070 Laptop GPU", "GeForce laptops", 86, 0, 8192 * kMiB,
     false, 40, 4096, 0, 7001, 256, "Windows (WSL): log of YOLOv5 6.1 (2022)"},
    {"rtx-4050-laptop", "NVIDIA GeForce RTX 4050 Laptop GPU", "GeForce laptops", 89, 0, 6140 * kMiB,
     false, 20, 12288, 0, 8001, 96, "Windows: log of Ultralytics 8.4.53 (2026)"},
    {"rtx-4060-laptop", "NVIDIA GeForce RTX 4060 Laptop GPU", "GeForce laptops", 89, 7806 * kMiB,
     8188 * kMiB, false, 24, 32768, 0, 8001, 128,
     "Linux: log of Ultralytics 8.4.5 (2026); Windows: nvidia-smi (2024); L2: "
     "github.com/Dr-Noob/gpufetch/issues/41"},
    {"rtx-4070-laptop", "NVIDIA GeForce RTX 4070 Laptop GPU", "GeForce laptops", 89, 0, 8188 * kMiB,
     false, 36, 32768, 0, 8001, 128, "Windows: log of Ultralytics 8.4.9 (2026)"},
    {"rtx-4080-laptop", "NVIDIA GeForce RTX 4080 Laptop GPU", "GeForce laptops", 89, 0,
     12282 * kMiB, false, 58, 49152, 0, 9001, 192,
     "Windows: log of YOLOv5 7.0 with torch 2.3 (2024)"},
    {"rtx-5060-laptop", "NVIDIA GeForce RTX 5060 Laptop GPU", "GeForce laptops", 120, 0,
     8151 * kMiB, false, 26, 32768, 0, 0, 128, "Windows: log of Ultralytics 8.4.48 (2026)"},
    {"rtx-5070-laptop", "NVIDIA GeForce RTX 5070 Laptop GPU", "GeForce laptops", 120, 0,
     8151 * kMiB, false, 36, 32768, 0, 0, 128, "Windows: training log (2026)"},
    {"rtx-5080-laptop", "NVIDIA GeForce RTX 5080 Laptop GPU", "GeForce laptops", 120, 0,
     16303 * kMiB, false, 60, 0, 0, 0, 256, "Windows: log of YOLOv5 with torch 2.7 (2026)"},
    {"rtx-5090-laptop", "NVIDIA GeForce RTX 5090 Laptop GPU", "GeForce laptops", 120, 0,
     24463 * kMiB, false, 82, 65536, 0, 0, 256, "Windows: nvidia-smi (2026), driver 610.74"},
    // Titan and workstation
    {"titan-xp", "NVIDIA TITAN Xp", "Titan and workstation", 61, 12778864640, 0, false, 30, 3072,
     1582, 5705, 384, "Linux: training log, torch 2.3.1 (2024)"},
    {"titan-v", "NVIDIA TITAN V", "Titan and workstation", 70, 12650414080, 0, false, 80, 4608,
     1455, 850, 3072, "Linux: training log, torch 1.12 (2022)"},
    {"titan-rtx", "NVIDIA TITAN RTX", "Titan and workstation", 75, 24212 * kMiB, 0, false, 72, 6144,
     1770, 7001, 384, "Linux: log of YOLOv5 7.0 (2023)"},
    {"quadro-t1000-max-q", "Quadro T1000 with Max-Q Design", "Titan and workstation", 75, 0,
     4096 * kMiB, false, 14, 1024, 0, 0, 128, "Windows: log of Ultralytics 8.3.0 (2024)"},
    {"quadro-rtx-8000", "Quadro RTX 8000", "Titan and workstation", 75, 48593 * kMiB, 0, false, 72,
     6144, 1770, 7001, 384, "Linux: log of Ultralytics 8.0.227 (2023)"},
    {"rtx-a2000-12gb", "NVIDIA RTX A2000 12GB", "Titan and workstation", 86, 12017 * kMiB, 0, false,
     26, 3072, 1200, 6001, 192, "Linux: log of Ultralytics 8.0.200 (2023)"},
    {"rtx-a4000", "NVIDIA RTX A4000", "Titan and workstation", 86, 16117 * kMiB, 0, false, 48, 4096,
     1560, 7001, 256, "Linux: log of Ultralytics 8.0.36 (2023)"},
    {"rtx-a5000", "NVIDIA RTX A5000", "Titan and workstation", 86, 24248 * kMiB, 0, false, 64, 6144,
     1695, 8001, 384, "Linux, ECC off: log of Ultralytics 8.3.75 (2025)"},
    {"rtx-a6000", "NVIDIA RTX A6000", "Titan and workstation", 86, 51160023040, 0, false, 84, 6144,
     1800, 8001, 384, "Linux, ECC off: deviceQuery, driver for CUDA 12.7"},
    {"rtx-6000-ada", "NVIDIA RTX 6000 Ada Generation", "Titan and workstation", 89, 48539 * kMiB, 0,
     false, 142, 98304, 2505, 10001, 384, "Linux, ECC off: log of Ultralytics 8.3.61 (2025)"},
    {"rtx-pro-6000-server", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "Titan and workstation",
     120, 97250 * kMiB, 0, false, 188, 131072, 2617, 14001, 512,
     "Linux: log of a program, torch 2.10 (2026)"},
    {"rtx-pro-6000-workstation", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
     "Titan and workstation", 120, 97887 * kMiB, 97887 * kMiB, true, 188, 131072, 2617, 14001, 512,
     "nvidia-smi (2026)"},
    // Data center
    {"p100-pcie-16gb", "Tesla P100-PCIE-16GB", "Data center", 60, 17071734784, 0, false, 56, 4096,
     1328, 715, 4096, "Linux: log of YOLOv5 5.0, 16280.875 MiB (2021)"},
    {"v100-sxm-16gb", "Tesla V100-SXM2-16GB", "Data center", 70, 16928342016, 0, false, 80, 6144,
     1530, 877, 4096, "Linux: deviceQuery, driver for CUDA 12.4"},
    {"v100-sxm-32gb", "Tesla V100-SXM2-32GB", "Data center", 70, 34072559616, 0, false, 80, 6144,
     1530, 877, 4096, "Linux: deviceQuery, driver for CUDA 12.9"},
    {"v100s-pcie-32gb", "Tesla V100S-PCIE-32GB", "Data center", 70, 32501 * kMiB, 0, false, 80,
     6144, 1597, 1107, 4096, "Linux: log of Ultralytics 8.0.194 (2023)"},
    {"t4", "Tesla T4", "Data center", 75, 15642329088, 0, false, 40, 4096, 1590, 5001, 256,
     "Linux: deviceQuery, driver for CUDA 12.5"},
    {"a10", "NVIDIA A10", "Data center", 86, 23696375808, 0, false, 72, 6144, 1695, 6251, 384,
     "Linux: deviceQuery, driver for CUDA 12.8 (2025)"},
    {"a10g", "NVIDIA A10G", "Data center", 86, 22587 * kMiB, 0, false, 80, 6144, 1710, 6251, 384,
     "Linux: torch.cuda.get_device_properties, to the MiB"},
    {"a30", "NVIDIA A30", "Data center", 80, 24164 * kMiB, 0, false, 56, 24576, 1440, 1215, 3072,
     "Linux: log of YOLOv9, torch 2.8 (2025)"},
    {"a40", "NVIDIA A40", "Data center", 86, 47608692736, 0, false, 84, 6144, 1740, 7251, 384,
     "Linux, ECC on: deviceQuery, driver for CUDA 12.4 (2024)"},
    {"a100-pcie-40gb", "NVIDIA A100-PCIE-40GB", "Data center", 80, 40377 * kMiB, 0, false, 108,
     40960, 1410, 1215, 5120, "Linux: log of Ultralytics 8.2.27 (2024)"},
    {"a100-pcie-80gb", "NVIDIA A100 80GB PCIe", "Data center", 80, 81154 * kMiB, 0, false, 108,
     40960, 1410, 1512, 5120, "Linux: log of Ultralytics 8.3.153 (2025)"},
    {"a100-sxm-40gb", "NVIDIA A100-SXM4-40GB", "Data center", 80, 42298834944, 0, false, 108, 40960,
     1410, 1215, 5120,
     "Linux: deviceQuery, driver for CUDA 12.2, github.com/bottlerocket-os/bottlerocket/pull/3873 "
     "(2024)"},
    {"a100-sxm-80gb", "NVIDIA A100-SXM4-80GB", "Data center", 80, 85100068864, 0, false, 108, 40960,
     1410, 1593, 5120, "Linux: deviceQuery, driver for CUDA 12.5"},
    {"l4", "NVIDIA L4", "Data center", 89, 23612293120, 0, false, 58, 49152, 2040, 6251, 192,
     "Linux: deviceQuery, driver for CUDA 12.0; 22693 MiB, the same to 0.1 %, in logs of 2025"},
    {"l40", "NVIDIA L40", "Data center", 89, 45466 * kMiB, 0, false, 142, 98304, 2490, 9001, 384,
     "Linux: out-of-memory text, 44.40 GiB, github.com/QwenLM/Qwen3-VL/issues/2097 (2026)"},
    {"l40s", "NVIDIA L40S", "Data center", 89, 47576711168, 0, false, 142, 98304, 2520, 9001, 384,
     "Linux: deviceQuery, driver for CUDA 12.4"},
    {"h20", "NVIDIA H20", "Data center", 90, 97285 * kMiB, 0, false, 78, 61440, 1980, 2619, 6144,
     "Linux: torch.cuda.get_device_properties in a kernel's source"},
    {"h100-pcie", "NVIDIA H100 PCIe", "Data center", 90, 81008 * kMiB, 0, false, 114, 51200, 1755,
     1593, 5120, "Linux: torch.cuda.get_device_properties in a program's source"},
    {"h100-sxm", "NVIDIA H100 80GB HBM3", "Data center", 90, 85028896768, 0, false, 132, 51200,
     1980, 2619, 5120, "Linux: deviceQuery, driver for CUDA 12.8"},
    {"h100-nvl", "NVIDIA H100 NVL", "Data center", 90, 95320 * kMiB, 0, false, 132, 0, 1785, 2619,
     6144, "Linux: log of Ultralytics 8.4.124 (2026)"},
    {"h200", "NVIDIA H200", "Data center", 90, 143156 * kMiB, 0, false, 132, 61440, 1980, 3201,
     6144, "Linux: torch.cuda.get_device_properties, to the MiB"},
    {"gh200-120gb", "NVIDIA GH200 120GB", "Data center", 90, 101468602368, 0, false, 132, 61440,
     1980, 2619, 6144, "Linux: deviceQuery, driver for CUDA 12.9 (2025)"},
    {"gh200-480gb", "NVIDIA GH200 480GB", "Data center", 90, 102005473280, 0, false, 132, 61440,
     1980, 2619, 6144, "Linux: deviceQuery, driver for CUDA 12.2 (2024)"},
    {"b200", "NVIDIA B200", "Data center", 100, 182642 * kMiB, 0, false, 148, 129024, 1965, 3996,
     8192, "Linux: torch.cuda.get_device_properties, to the MiB"},
    {"gb200", "NVIDIA GB200", "Data center", 100, 189471 * kMiB, 0, true, 152, 129024, 0, 3996,
     8192, "nvidia-smi (2026), driver 590.48"},
    {"b300", "NVIDIA B300 SXM6 AC", "Data center", 103, 275040 * kMiB, 0, true, 148, 129024, 0, 0,
     8192, "nvidia-smi (2026), driver 590.48"},
    // Unified memory and Jetson
    {"gb10", "NVIDIA GB10", "Unified memory and Jetson", 121, 122570 * kMiB, 0, false, 48, 24576,
     2418, 8533, 256, "Linux: deviceQuery, driver for CUDA 13.0 (2025)"},
    {"agx-orin-64gb", "Orin", "Unified memory and Jetson", 87, 65893089280, 0, false, 16, 4096,
     1300, 1300, 256, "Linux: deviceQuery, driver for CUDA 12.6 (2025)"},
    {"agx-orin-32gb", "Orin", "Unified memory and Jetson", 87, 30697 * kMiB, 0, false, 14, 4096,
     930, 930, 256, "Linux: log of Ultralytics 8.3.78 (2025)"},
    {"orin-nx-16gb", "Orin", "Unified memory and Jetson", 87, 16136011776, 0, false, 8, 4096, 918,
     918, 128, "Linux: deviceQuery, driver for CUDA 11.4 (2023)"},
    {"orin-nano-8gb", "Orin", "Unified memory and Jetson", 87, 7620 * kMiB, 0, false, 8, 2048, 625,
     625, 128, "Linux: log of Ultralytics 8.3.204 (2025)"},
    // MIG slices
    {"a100-sxm-40gb-mig-1g.10gb", "NVIDIA A100-SXM4-40GB MIG 1g.10gb", "MIG slices", 80,
     9856 * kMiB, 0, false, 14, 10240, 1410, 1215, 5120, "Linux: log of Ultralytics 8.2.79 (2024)"},
    {"a100-sxm-80gb-mig-1g.10gb", "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "MIG slices", 80,
     9728 * kMiB, 0, false, 14, 5120, 1410, 1593, 5120,
     "Linux: nvidia-smi mig -lgip, to 0.01 GiB (2024)"},
    {"a100-sxm-80gb-mig-2g.20gb", "NVIDIA A100-SXM4-80GB MIG 2g.20gb", "MIG slices", 80,
     19968 * kMiB, 0, false, 28, 10240, 1410, 1593, 5120,
     "Linux: nvidia-smi mig -lgip, to 0.01 GiB (2024)"},
    {"a100-sxm-80gb-mig-4g.40gb", "NVIDIA A100-SXM4-80GB MIG 4g.40gb", "MIG slices", 80,
     40192 * kMiB, 0, false, 56, 20480, 1410, 1593, 5120,
     "Linux: nvidia-smi mig -lgip, to 0.01 GiB (2024)"},
    {"a100-sxm-80gb-mig-7g.80gb", "NVIDIA A100-SXM4-80GB MIG 7g.80gb", "MIG slices", 80,
     80640 * kMiB, 0, false, 98, 40960, 1410, 1593, 5120,
     "Linux: nvidia-smi mig -lgip, to 0.01 GiB (2024)"},
    {"a100-sxm-80gb-mig-3g.40gb", "NVIDIA A100-SXM4-80GB MIG 3g.40gb", "MIG slices", 80,
     42144366592, 0, false, 42, 20480, 1410, 1593, 5120,
     "Linux: torch.cuda.mem_get_info, torch 2.2, driver 535 (2024)"},
    {"h100-pcie-mig-2g.20gb", "NVIDIA H100 PCIe MIG 2g.20gb", "MIG slices", 90, 20091 * kMiB, 0,
     false, 30, 12800, 1755, 1593, 5120, "Linux: nvidia-smi mig -lgip, to 0.01 GiB (2025)"},
    {"h100-pcie-mig-3g.40gb", "NVIDIA H100 PCIe MIG 3g.40gb", "MIG slices", 90, 40448 * kMiB, 0,
     false, 46, 25600, 1755, 1593, 5120, "Linux: nvidia-smi mig -lgip, to 0.01 GiB (2025)"},
    {"h100-pcie-mig-4g.40gb", "NVIDIA H100 PCIe MIG 4g.40gb", "MIG slices", 90, 40448 * kMiB, 0,
     false, 62, 25600, 1755, 1593, 5120, "Linux: nvidia-smi mig -lgip, to 0.01 GiB (2025)"},
    {"h100-pcie-mig-7g.80gb", "NVIDIA H100 PCIe MIG 7g.80gb", "MIG slices", 90, 81152 * kMiB, 0,
     false, 114, 51200, 1755, 1593, 5120, "Linux: nvidia-smi mig -lgip, to 0.01 GiB (2025)"},
};

// Where tensor cores compute other than their number, the clock and the capability say: TFLOP/s in
// float16 of NVIDIA's data sheets, on dense operands.
struct TensorPeak {
  const char* name;
  double tflops;
};
constexpr TensorPeak kTensorPeaks[] = {
    {"a10g", 70},      {"l40", 181},  {"h20", 148},         {"h100-pcie", 756},   {"h100-sxm", 989},
    {"h100-nvl", 835}, {"h200", 989}, {"gh200-120gb", 989}, {"gh200-480gb", 989}, {"b200", 2250},
};

// GPUs that have 8 lanes of PCI Express, not 16.
constexpr const char* kEightLanes[] = {"rtx-4060", "rtx-4060-ti-8gb", "rtx-4060-ti-16gb",
                                       "rtx-5060", "rtx-5060-ti-8gb", "rtx-5060-ti-16gb"};

constexpr double kNvlinkToHost = 450e9;  // of GH200, in one direction

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsWordChar(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.'; }

// Returns the word characters of `text` in lower case.
std::string Plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsWordChar(Lower(c))) out += Lower(c);
  }
  return out;
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (IsWordChar(Lower(c))) {
      words.back() += Lower(c);
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool IsSlice(const Card& card) { return card.group == "MIG slices"; }

// Returns true for "4090" and rtx-4090, but false for "60" and rtx-4060.
bool NameEndsWith(const Card& card, const std::string& plain) {
  const size_t dash = card.name.find('-');
  return dash != std::string::npos && Plain(std::string_view(card.name).substr(dash + 1)) == plain;
}

bool HasWords(const Card& card, const std::vector<std::string>& words) {
  const std::string name = Plain(card.name), title = Plain(card.title);
  for (const std::string& word : words) {
    if (name.find(word) == std::string::npos && title.find(word) == std::string::npos) return false;
  }
  return !words.empty();
}

std::string Names(const std::vector<const Card*>& cards) {
  std::string names;
  for (const Card* card : cards) names += (names.empty() ? "" : ", ") + card->name;
  return names;
}

const Card* FindByName(std::string_view text, std::string* error) {
  const std::string plain = Plain(text);
  const std::vector<std::string> words = WordsOf(text);
  std::vector<const Card*> wholes, ends, cards, slices;
  for (const Card& card : AllCards()) {
    if (Plain(card.name) == plain) return &card;
    if (Plain(card.title) == plain) wholes.push_back(&card);
    // "4090" is enough for rtx-4090, but "rtx" is not for titan-rtx.
    if (plain.find_first_of("0123456789") != std::string::npos && NameEndsWith(card, plain)) {
      ends.push_back(&card);
    }
    if (HasWords(card, words)) (IsSlice(card) ? slices : cards).push_back(&card);
  }
  for (const auto* found : {&wholes, &ends, &cards, &slices}) {
    if (found->size() == 1) return found->front();
    if (found->size() < 2) continue;
    *error = "several GPUs match: " + Names(*found);
    return nullptr;
  }
  // Collects the GPUs that have the most characters in the places of `text`, by number from the
  // front or from the back.
  constexpr size_t kMaxSimilar = 8;
  std::vector<const Card*> similar;
  size_t most = std::max<size_t>(plain.size() / 2, 3);
  for (const Card& card : AllCards()) {
    const std::string name = Plain(card.name);
    size_t front = 0, back = 0;
    for (size_t i = 0; i < std::min(name.size(), plain.size()); ++i) {
      front += name[i] == plain[i] ? 1 : 0;
      back += name[name.size() - 1 - i] == plain[plain.size() - 1 - i] ? 1 : 0;
    }
    const size_t same = std::max(front, back);
    if (same < most) continue;
    if (same > most) similar.clear();
    most = same;
    similar.push_back(&card);
  }
  similar.resize(std::min(similar.size(), kMaxSimilar));
  *error = "no such GPU; --card list prints the " + std::to_string(AllCards().size()) +
           " there are" + (similar.empty() ? "" : ", among them " + Names(similar)) +
           "; custom:12GiB,cc=8.9,sms=46 is one of your own";
  return nullptr;
}

// Parses a whole number; returns nullopt if `text` is anything else or above `max`.
std::optional<uint64_t> ParseNumber(std::string_view text, uint64_t max) {
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
    if (value > max) return std::nullopt;
  }
  return text.empty() ? std::nullopt : std::optional(value);
}

// Parses "12GiB", "11.5GiB", "12282MiB" or a number of bytes.
std::optional<uint64_t> ParseMemory(std::string_view text) {
  uint64_t unit = 1;
  for (const auto& [suffix, bytes] : {std::pair("GiB", kGiB), std::pair("MiB", kMiB)}) {
    if (!EndsWith(text, suffix)) continue;
    unit = bytes;
    text.remove_suffix(3);
  }
  const uint64_t most = (uint64_t{1} << 50) / unit;
  const size_t point = text.find('.');
  if (point == std::string_view::npos || unit == 1) {
    const std::optional<uint64_t> whole = ParseNumber(text, most);
    return whole.has_value() ? std::optional(*whole * unit) : std::nullopt;
  }
  const std::string_view rest = text.substr(point + 1);
  const std::optional<uint64_t> whole = ParseNumber(text.substr(0, point), most);
  const std::optional<uint64_t> part = ParseNumber(rest, 999);
  if (!whole.has_value() || !part.has_value() || rest.size() > 3) return std::nullopt;
  uint64_t scale = 1;
  for (size_t i = 0; i < rest.size(); ++i) scale *= 10;
  return *whole * unit + *part * unit / scale;
}

std::optional<Card> CustomCard(std::string_view text, std::string* error) {
  constexpr char kForm[] = "expected custom:SIZE,cc=MAJOR.MINOR,sms=N";
  Card card;
  card.name = text;
  card.title = "custom GPU";
  card.group = "custom";
  card.source = "given";
  std::string_view rest = text.substr(std::string_view("custom:").size());
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    if (part.substr(0, 3) == "cc=") {
      const size_t point = part.find('.');
      if (point == std::string_view::npos) return *error = kForm, std::nullopt;
      const std::optional<uint64_t> major = ParseNumber(part.substr(3, point - 3), 99);
      const std::optional<uint64_t> minor = ParseNumber(part.substr(point + 1), 9);
      if (!major.has_value() || !minor.has_value()) return *error = kForm, std::nullopt;
      card.capability = static_cast<int>(*major * 10 + *minor);
      if (CapabilityOf(card).number == 0) {
        *error = std::string(part) + " is none of";
        for (const Capability& one : kCapabilities) {
          *error += " " + std::to_string(one.number / 10) + "." + std::to_string(one.number % 10);
        }
        return std::nullopt;
      }
    } else if (part.substr(0, 4) == "sms=") {
      const std::optional<uint64_t> number = ParseNumber(part.substr(4), 1024);
      if (number.value_or(0) == 0) return *error = kForm, std::nullopt;
      card.multiprocessors = static_cast<int>(*number);
    } else {
      const std::optional<uint64_t> memory = ParseMemory(part);
      if (memory.value_or(0) == 0 || card.memory != 0) return *error = kForm, std::nullopt;
      card.memory = card.linux_memory = card.windows_memory = *memory;
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (card.memory == 0 || card.capability == 0 || card.multiprocessors == 0) {
    return *error = kForm, std::nullopt;
  }
  return card;
}

}  // namespace

const std::vector<Card>& AllCards() {
  static const std::vector<Card>* const cards = [] {
    auto* made = new std::vector<Card>;
    for (const Row& row : kRows) {
      Card card;
      card.name = row.name;
      card.title = row.title;
      card.group = row.group;
      card.capability = row.capability;
      card.linux_memory = row.linux_memory;
      card.windows_memory = row.windows_memory;
      card.memory = row.linux_memory != 0 ? row.linux_memory : row.windows_memory;
      card.is_nominal = row.is_nominal;
      card.multiprocessors = row.multiprocessors;
      card.l2_bytes = row.l2_kib * 1024;
      card.clock_khz = row.clock_mhz * 1000;
      card.memory_clock_khz = row.memory_clock_mhz * 1000;
      card.memory_bus_bits = row.memory_bus_bits;
      card.source = row.source;
      made->push_back(std::move(card));
    }
    return made;
  }();
  return *cards;
}

std::optional<Card> FindCard(std::string_view text, std::string* error) {
  if (text.substr(0, 7) == "custom:") return CustomCard(text, error);
  const bool windows = EndsWith(text, ":windows");
  const bool on_linux = EndsWith(text, ":linux");
  const Card* found =
      FindByName(text.substr(0, windows || on_linux ? text.rfind(':') : text.size()), error);
  if (found == nullptr) return std::nullopt;
  Card card = *found;
  if (windows) card.memory = card.windows_memory;
  if (on_linux) card.memory = card.linux_memory;
  if (card.memory == 0) {
    *error = std::string("no figure of this GPU's memory on ") + (windows ? "Windows" : "Linux") +
             " was found; --card list has those that were";
    return std::nullopt;
  }
  return card;
}

bool SharesHostMemory(const Card& card) {
  return card.capability == 87 || card.capability == 110 || card.capability == 121;
}

const Capability& CapabilityOf(const Card& card) {
  static constexpr Capability kNone;
  for (const Capability& capability : kCapabilities) {
    if (capability.number == card.capability) return capability;
  }
  return kNone;
}

Rates RatesOf(const Card& card) {
  Rates rates;
  const bool is_shared = IsSlice(card) || SharesHostMemory(card);
  if (is_shared || card.clock_khz == 0 || card.memory_clock_khz == 0) return rates;
  const Capability& capability = CapabilityOf(card);
  const double clocks = card.multiprocessors * 1e3 * card.clock_khz;
  rates.float32 = clocks * capability.float32_per_clock;
  // GeForce GPUs halve it for sums in float32. Those called GTX have no tensor cores.
  const bool is_geforce = card.group.substr(0, 7) == "GeForce";
  const bool is_gtx = card.name.substr(0, 3) == "gtx";
  rates.float16 = is_gtx ? 0 : clocks * capability.float16_per_clock / (is_geforce ? 2 : 1);
  for (const TensorPeak& peak : kTensorPeaks) {
    if (card.name == peak.name) rates.float16 = peak.tflops * 1e12;
  }
  rates.float16 = std::max(rates.float16, rates.float32);
  const bool is_ampere = card.capability >= 80;
  rates.bfloat16 = is_ampere ? rates.float16 : rates.float32;
  rates.tf32 = is_ampere ? rates.float16 / 2 : rates.float32;
  rates.memory = 2e3 * card.memory_clock_khz * card.memory_bus_bits / 8;
  const bool is_narrow = std::any_of(std::begin(kEightLanes), std::end(kEightLanes),
                                     [&](const char* name) { return card.name == name; });
  // 8 GT/s in generation 3, of which 128 bits of 130 are data.
  const double lane = 1e9 * (1 << (capability.pcie_generation - 3)) * 128 / 130;
  const bool is_grace = card.name.substr(0, 5) == "gh200";
  rates.host = is_grace ? kNvlinkToHost : lane * (is_narrow ? 8 : 16);
  return rates;
}

std::optional<uint64_t> TotalOfCardWith(uint64_t bytes) {
  constexpr uint64_t kSpread = 160 * kMiB;  // of one kind of board
  uint64_t least = ~uint64_t{0}, most = 0;
  for (const Card& card : AllCards()) {
    if (IsSlice(card)) continue;
    for (const uint64_t total : {card.linux_memory, card.windows_memory}) {
      if (total < bytes || total - bytes > kMaxOutsideBytes) continue;
      if (total < least) least = total;
      if (total > most) most = total;
    }
  }
  if (most == 0 || most - least > kSpread) return std::nullopt;
  return least;
}

}  // namespace memreplay
