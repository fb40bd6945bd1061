"""Tests scripts under `memreplay record --card`; the slow ones are in record_more_test.py, and the whole command is
tested in record_command_test.py."""
import json
import os
import pathlib
import sys

import events
from recorded import Case, Recorded, main, older_than


class RecordTest(Case):
    def test_mlp(self):
        run = self.runs("mlp.py")
        self.same_left_alone(run, "mlp.py")

    def test_gpt_flash(self):
        run = self.runs("gpt.py")
        self.same_left_alone(run, "gpt.py")
        asked = run.process["values"]["asked"]
        self.assertTrue(any("gpt.py:" in row["place"] and row["what"] == "item" for row in asked), asked)

    def test_gpt_expandable_segments(self):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        try:
            self.runs("gpt.py", "steps=1", figures_of="gpt.py expandable")
        finally:
            del os.environ["PYTORCH_CUDA_ALLOC_CONF"]

    def test_same_program_same_bytes(self):
        """Two runs are alike though the first unpacks and compiles, and so is one in another folder, with other words
        and another environment: autocast's weights go in an order of host addresses, which these do not move."""
        cache = {"XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        folder = os.path.join(self.folder, "a-folder-of-another-length")
        os.mkdir(folder)
        one, again = (self.record("gpt.py", "steps=1", environment=cache, name=name) for name in ("1", "2"))
        other = self.record("gpt.py", "steps=000000000000000001", name="another-name", cwd=folder,
                            environment={**cache, "ANOTHER": "x" * 700, "AND_MORE": "y"})
        traces = [events.load(run.snapshot) for run in (one, again, other)]
        exact = [[(event["action"], event["addr"], event["size"], event["stream"])
                  for event in trace["device_traces"][0]] for trace in traces]
        self.assertGreater(len(exact[0]), 1000)
        self.assertEqual(exact[0], exact[1])
        self.assertEqual(exact[0], exact[2])

    def test_transformer(self):
        run = self.runs("transformer.py")
        self.same_left_alone(run, "transformer.py")

    def test_values_are_true(self):
        run = self.runs("truths.py")
        self.assertIn("all true", run.output)

    def test_zeros_of_large_tensors(self):
        """Zeros are known until something else is written there, and tensors that are made like large ones are."""
        run = self.record("zeros.py")
        self.assertEqual(run.status, 0, run.said)

    def test_recurrent_networks(self):
        run = self.runs("recurrent.py")
        assumed = " ".join(row["what"] for row in run.process["card"]["assumptions"])
        self.assertIn("the cuDNN workspace is assumed to be 0 bytes", assumed)
        self.assertIn("the cuDNN reserve space", assumed)

    def test_mask_of_unknown_values(self):
        """A mask takes as many as --dynamic-fraction says, and what it takes has values: true elements of what is
        there."""
        for fraction, taken in (("1", 4096), ("0.25", 1024)):
            run = self.record("unknown_mask.py", flags=["--dynamic-fraction", fraction])
            self.assertEqual(run.status, 0, run.said)
            self.assertIn(f"taken {taken} in groups 8\n", run.output)
            self.assertIn(f"{taken:,} of 4,096 (--dynamic-fraction)",
                          [row["answer"] for row in run.process["values"]["asked"]])

    def test_what_follows_from_unknown_values(self):
        """What follows is computed from the stand-ins; docs/record_internals.md has the table."""
        run = self.record("unknown_derived.py")
        self.assertEqual(run.status, 0, run.said)
        for line in ("a number True", "its double True", "how many are positive 1024", "all below 2 True",
                     "an integer 0", "its successor 1"):
            self.assertIn(f"{line}\n", run.output)
        self.assertIn("1024", [row["answer"] for row in run.process["values"]["asked"]])

    def test_choices_by_unknown_values(self):
        run = self.record("unknown_indices.py")
        self.assertEqual(run.status, 0, run.said)
        self.assertIn("all chosen", run.output)

    def test_few_values_are_few(self):
        run = self.record("few_values.py")
        self.assertEqual(run.status, 0, run.said)
        self.assertIn("few are few", run.output)

    def test_distributions(self):
        """Arguments that were never computed pass the checks of torch.distributions; known ones are checked."""
        run = self.record("distributions.py")
        self.assertEqual(run.status, 0, run.said)
        self.assertIn("what is known is checked", run.output)

    def test_loop_on_an_unknown_value_ends(self):
        run = self.record("unknown_loop.py", flags=["--unknown-limit", "100"])
        self.assertEqual(run.status, 1)
        self.assertEqual(run.process["error"], "EndlessWait")
        self.assertIn("unknown_loop.py:5 read 100 times", run.process["error_text"])

    def test_out_of_memory(self):
        for phase in ("forward", "backward", "optimizer", "evaluation"):
            with self.subTest(phase):
                run = self.record("oom.py", phase, flags=["--capacity", "6GiB", "--reserve", "400MiB"], name=phase)
                self.assertEqual(run.status, 1, run.said)
                self.assertEqual(run.process["error"], "OutOfMemoryError")
                self.assertIn(f"out of memory in {phase}", run.output)
                self.holds(run, f"oom.py {phase}")
        run = self.record("oom.py", "forward", "catch", flags=["--capacity", "6GiB", "--reserve", "400MiB"])
        self.assertEqual((run.status, run.answer["exit_status"]), (1, 0), run.said)

    def test_a_program_that_resets_the_peaks(self):
        run = self.record("resets.py")
        self.assertEqual(run.status, 1, run.said)  # memory ran out, also if that counter was reset
        card, = run.process["cards"]
        self.assertEqual((int(card["peak_allocated"]), int(card["ooms"])), (1 << 30, 1))
        snapshot = events.load(run.snapshot)
        (notes,) = snapshot["memreplay"]["devices"]  # are where they belong though the counters were reset
        counted = [event for event in snapshot["device_traces"][0] if event["action"] in ("alloc", "free_requested")]
        self.assertEqual(notes["end"], len(counted))

    def test_own_recording(self):
        run = self.runs("own_recording.py", self.folder, figures_of="own_recording.py")
        self.assertIn("as on a card", run.output)

    def test_graphs(self):
        run = self.runs("graphs.py")
        self.same_left_alone(run, "graphs.py")

    def test_on_a_gpu(self):
        """Without --card, it is PyTorch's own recording on the GPU there is, with nothing of the card's in it."""
        run = self.record("transformer.py", card=None, environment=self.gpu())
        self.assertEqual(run.status, 0, run.said)
        self.holds(run, "transformer.py")  # the same events as on the simulated GPU
        self.assertNotIn("card", run.process)
        self.assertNotIn("values", run.process)
        frames = [frame for event in events.load(run.snapshot)["device_traces"][0] for frame in event["frames"]]
        self.assertTrue(frames and all(frame["filename"].endswith(".py") for frame in frames[-100:]))
        run = self.record("oom.py", "forward", card=None, name="oom", environment=self.gpu(
            CAPACITY=6 << 30, RESERVE=400 << 20))
        self.assertEqual((run.status, run.process["error"]), (1, "OutOfMemoryError"), run.said)
        self.holds(run, "oom.py forward")

    def test_extension(self):
        """Kernels that are not PyTorch's are launched as any, and the summary says that nobody computed them."""
        kernels = self.extension("libkernels.so")
        run = self.runs("extension.py", kernels, figures_of="extension.py")
        self.assertIn(
            {"what": "kernels of libkernels.so compute nothing; tensors that they write keep their old values",
             "calls": 2}, run.process["card"]["assumptions"])
        self.assertIn("cublasXtGetNumBoards", [call["name"] for call in run.process["card"]["unknown"]])
        self.assertEqual(int(run.process["cards"][0]["outside"]), 160 << 20)
        outside = {}
        for row in run.process["card"]["outside"]:
            outside.setdefault(row["library"], {})[row["function"] or row["object"]] = row
        own = outside.pop("libkernels.so")
        self.assertEqual({name: (int(row["calls"]), int(row["peak"]) >> 20) for name, row in own.items()
                          if row["function"]},
                         {"cudaMalloc": (1, 100), "cudaMallocAsync": (2, 30), "cuMemAllocFromPoolAsync": (1, 20),
                          "cuMemCreate": (1, 10), "cuMemAddressReserve": (1, 20)})
        self.assertEqual({name: int(row["most"]) for name, row in own.items() if row["object"]},
                         {"kernel": 2, "module": 2, "cuBLAS handle": 2, "cuDNN handle": 1})
        self.assertEqual(int(outside["libc10_cuda.so"]["CUDA context"]["most"]), 1)
        self.assertEqual([name for rows in outside.values() for name, row in rows.items() if row["function"]], [])
        run = self.record("extension.py", kernels, self.extension("libunknown.so"))
        self.assertEqual(run.status, 1)
        self.assertIn("the simulated GPU lacks cudaSomethingThatNobodyKnows", run.answer["faults"][0])

    def test_sleep_mode(self):
        """Memory that PyTorch's allocator has from another library is counted once."""
        if older_than("2.6"):
            self.skipTest("a pool has no allocator of its own")
        run = self.runs("sleep_mode.py", self.extension("libkernels.so"), figures_of="sleep_mode.py")
        self.assertEqual(int(run.process["cards"][0]["outside"]), 10 << 20)
        pages = [row for row in run.process["card"]["outside"] if row["function"] == "cuMemCreate"]
        self.assertEqual([(row["library"], int(row["calls"]), int(row["peak"]) >> 20, int(row["torchs_peak"]) >> 20)
                          for row in pages], [("libkernels.so", 3, 110, 100)])

    def test_notes(self):
        """Each address is that of a live allocation, and a training step is noted whole."""
        run = self.record("gpt.py", "steps=2")
        self.assertEqual(run.status, 0, run.said)
        snapshot = events.load(run.snapshot)
        notes = snapshot["memreplay"]
        (device,) = notes["devices"]
        counted = [event for event in snapshot["device_traces"][0] if event["action"] in ("alloc", "free_requested")]
        self.assertEqual(device["end"], len(counted))
        live, passed, seen = set(), 0, {}
        for kind, place, name, address in zip(*(device[key] for key in ("kind", "place", "name", "address"))):
            for event in counted[passed:place]:
                (live.add if event["action"] == "alloc" else live.discard)(event["addr"])
            passed = max(passed, place)
            kind, name = notes["kinds"][kind], notes["names"][name]
            seen.setdefault(kind, []).append(name)
            if address:
                self.assertIn(address, live, (kind, name, place))
        parameters = set(seen["parameter"]) - {""}
        self.assertIn("blocks.0.attention.qkv.weight", parameters)
        self.assertEqual(set(seen["gradient"]), parameters)
        self.assertTrue({f"{name}.exp_avg" for name in parameters} <= set(seen["optimizer_state"]))
        self.assertEqual(seen["forward"], ["Model"] * 2)
        self.assertEqual(len(seen["backward"]), 2)
        self.assertEqual(seen["optimizer"], ["AdamW"] * 2)
        self.assertIn("blocks.1.mlp", seen["module"])

    def test_notes_under_torch_compile(self):
        """Nothing of ours is in what Dynamo traces: the same graphs, frames and events as without notes."""
        in_place = () if older_than("2.2") else ("in-place", "blocks")
        for mode in ("module", "step", "optimizer", *in_place):
            with self.subTest(mode):
                run = self.record("compiled_training.py", mode)
                plain = self.record("compiled_training.py", mode, flags=["--no-notes"], name="plain")
                graphs = [[line for line in each.output.splitlines() if line.startswith("graphs")]
                          for each in (run, plain)]
                self.assertEqual(len(graphs[0]), 1, run.output)
                self.assertEqual(graphs[0], graphs[1])
                self.assertIsNone(events.difference(*(events.events_of(events.load(each.snapshot))
                                                      for each in (run, plain))))

    def test_several_cards(self):
        self.runs("several_cards.py", flags=["--cards", "4"])

    def test_visible_devices(self):
        for named, cards, seen in (("1", 1, 1), ("2,3", 4, 2), ("-1", 1, 0), ("GPU-8f6d", 1, 1)):
            with self.subTest(named):
                run = self.record("visible.py", named, flags=["--cards", str(cards)])
                self.assertEqual(run.status, 0, run.said)
                self.assertIn(f"sees {seen} cards {seen > 0}", run.output)
                reserved = [int(card["peak_reserved"]) for process in run.answer["processes"]
                            for card in process["cards"]]
                self.assertEqual([used for used in reserved if used], [2 << 20] * (seen + (seen > 0)))  # and the child

    def test_pools(self):
        if older_than("2.5"):
            self.skipTest("torch.cuda.MemPool came with 2.5")
        run = self.runs("pools.py")
        self.same_left_alone(run, "pools.py")
        self.runs("gone_pools.py")

    def test_options_of_pools(self):
        if older_than("2.10"):
            self.skipTest("MemPool's no_split came with 2.10")
        # Before 2.13, a file does not say which requests that ran out of memory were a pool's.
        flags = [] if older_than("2.13") else ["--capacity", "600MiB", "--reserve", "100MiB"]
        gone = [] if older_than("2.13") else ["gone"]
        for options in ("no_split", "use_on_oom", "both"):
            for notes in ([], ["--no-notes"]):
                with self.subTest(options, notes=notes):
                    run = self.record("pool_options.py", options, "1", *gone, flags=[*flags, *notes])
                    self.assertIn("reserved ", run.output)
                    self.holds(run, f"pool_options.py {options}")
                    if not notes:
                        noted = events.load(run.snapshot)["memreplay"]
                        self.assertEqual([noted["names"][name] for name in noted["devices"][0]["name"]],
                                         ["no_split,use_on_oom" if options == "both" else options] * (1 + len(gone)))

    def test_captures_with_frees_into_pools_that_go(self):
        for seed in ("1", "2"):
            self.runs("captures.py", seed, flags=["--no-notes"])

    def test_settings_that_change(self):
        for conf in ("", "max_split_size_mb:100"):
            for early in ((), ("early",)):
                with self.subTest(conf, early=early):
                    run = self.record("settings.py", *early, environment={"PYTORCH_CUDA_ALLOC_CONF": conf})
                    self.assertEqual(run.status, 0, run.said)
                    notes = events.load(run.snapshot)["memreplay"]
                    (device,) = notes["devices"]
                    rows = [(place, notes["names"][name]) for kind, place, name in zip(*(device[key] for key in (
                        "kind", "place", "name"))) if notes["kinds"][kind] == "settings"]
                    self.assertEqual(rows[0], (0, conf))
                    self.assertEqual(rows[1][0] == 0, bool(early))
                    self.assertEqual([text for place, text in rows[1:3]], ["max_split_size_mb:24", ""])
                    self.holds(run, " ".join(["settings.py", *early, *([conf] if conf else [])]))
        self.same_left_alone(self.record("settings.py"), "settings.py")

    def test_share_of_the_gpu_that_changes(self):
        run = self.record("memory_share.py")
        self.assertIn("set below what is reserved releases 0\nserved from the cache True\nreserved MiB then 48\n"
                      "refused 3 and then\n", run.output)
        notes = events.load(run.snapshot)["memreplay"]
        (device,) = notes["devices"]
        shares = [(notes["names"][name], address) for kind, name, address in zip(*(device[key] for key in (
            "kind", "name", "address"))) if notes["kinds"][kind] == "memory_fraction"]
        total = int(run.process["cards"][0]["capacity"])
        self.assertEqual([(round(float(share) * total / (1 << 20)), of) for share, of in shares],
                         [(total >> 20, total), (300, total), (600, total), (150, total), (total >> 20, total),
                          (64, total)])
        self.holds(run, "memory_share.py")
        self.same_left_alone(run, "memory_share.py")

    def test_pinned_memory(self):
        """PyTorch's statistics of pinned memory are those of the model after every step, and so is the card's peak."""
        confs = ["", "", *([] if older_than("2.13") else [
            "pinned_max_cached_size_mb:10", "pinned_max_round_threshold_mb:1",
            "pinned_max_round_threshold_mb:4,pinned_max_cached_size_mb:16"])]
        for seed, conf in enumerate(confs):
            with self.subTest(seed, conf=conf):
                run = self.record("pinned.py", str(seed), conf, environment={"PYTORCH_CUDA_ALLOC_CONF": conf})
                self.assertEqual(run.status, 0, run.said)
                self.assertIn(f"pinned {run.process['card']['pinned']['peak']} ", run.output)
                self.assertEqual("compared" in run.output, not older_than("2.7"))

    def test_what_if_of_pinned_memory(self):
        """The peak without rounding is predicted, also where the GPU still uses blocks that were freed."""
        for words in ("pinned.py", "5"), ("pinned_copies.py", "1"), ("pinned_copies.py", "2"):
            with self.subTest(words):
                pinned = self.record(*words).process["card"]["pinned"]
                self.assertLess(int(pinned["unrounded_peak"]), int(pinned["peak"]))
                for line in pinned["lines"]:
                    self.assertIn(f"programs/{words[0]}:", line["place"])
                    self.assertLess(int(line["requested"]), int(line["held"]))
                if not older_than("2.13"):
                    conf = "pinned_max_round_threshold_mb:1"
                    tried = self.record(*words, *([conf] if words[0] == "pinned.py" else []),
                                        environment={"PYTORCH_CUDA_ALLOC_CONF": conf}).process["card"]["pinned"]
                    self.assertEqual(tried["peak"], pinned["unrounded_peak"])
                    self.assertEqual(tried["unrounded_peak"], tried["peak"])
        if not older_than("2.13"):
            # Two other ways to write it, and a setting that is not modelled.
            own = "pinned_max_round_threshold_mb:8 , pinned_max_round_threshold_mb : 1"
            tried = self.record("pinned_copies.py", "1", environment={"PYTORCH_ALLOC_CONF": own}).process
            self.assertEqual(tried["card"]["pinned"]["unrounded_peak"], tried["card"]["pinned"]["peak"])
            run = self.record("pinned_copies.py", "1", environment={
                "PYTORCH_CUDA_ALLOC_CONF": "pinned_reserve_segment_size_mb:64"})
            pinned = run.process["card"]["pinned"]
            self.assertEqual(pinned["unmodelled"], "pinned_reserve_segment_size_mb")
            self.assertEqual(int(pinned["unrounded_peak"]), 0)

    def test_host_memory(self):
        run = self.record("pinned_copies.py", "1", flags=["--host-memory", "100MiB"])
        self.assertEqual(run.status, 1, run.said)
        pinned = run.process["card"]["pinned"]
        self.assertEqual(int(pinned["limit"]), 100 << 20)
        self.assertGreater(int(pinned["refused"]), 0)

    def test_memory_that_the_gpu_shares_with_the_host(self):
        """What is pinned is missing on the GPU."""
        for card, shares in (("orin-nano-8gb", True), ("rtx-4060", False)):
            with self.subTest(card):
                run = self.record("pinned_and_taken.py", card=card)
                self.assertEqual(run.status, int(shares), run.said)  # memory ran out
                self.assertIn(f"integrated {int(shares)} missing {int(shares) << 30}", run.output)
                figures, pinned = run.process["cards"][0], run.process["card"]["pinned"]
                self.assertEqual(int(pinned["from_gpu"]), int(shares))
                self.assertEqual(int(figures["capacity"]) - int(figures["spare"]) - int(run.process["card"]["reserve"]),
                                 int(figures["peak_reserved"]) + int(figures["outside"]) + (int(shares) << 30))
                self.assertEqual("out of memory" in run.output, shares)

    def test_one_rank_of_a_job(self):
        flags = ["--ranks", "8", "--rank", "3", "--nccl", "256MiB"]
        # Earlier releases have no fully_shard() or no device meshes.
        for mode in ("ddp", "fsdp1") if older_than("2.6") else ("ddp", "fsdp2", "tensor"):
            with self.subTest(mode):
                run = self.runs("ranks.py", mode, flags=flags)
                self.assertIn("rank 3 of 8 is done", run.output)
                self.assertEqual(run.process["name"], "rank 3")
                self.assertIn("256 MiB", json.dumps(run.process["card"]["assumptions"]))

    def test_what_a_rank_asks_of_its_group(self):
        for end in ((), ("left",)):
            run = self.record("ranks.py", "calls", *end, flags=["--ranks", "8", "--rank", "3"])
            self.assertEqual(run.status, 0, run.said)
        run = self.record("ranks.py", "calls", flags=["--ranks", "8", "--rank", "6", "--cards", "4"])
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual([int(card["peak_reserved"]) > 0 for card in run.process["cards"]],
                         [False, False, True, False])

    def test_tensors_shared_between_processes(self):
        run = self.runs("shares.py")
        self.assertIn("shared 2 0", run.output)
        self.assertEqual(len(run.answer["processes"]), 2)
        self.assertIn("memory was shared by another process, and its values are unknown here",
                      [row["what"] for row in run.process["card"]["assumptions"]])

    def test_what_is_not_served(self):
        run = self.record("unserved.py")
        self.assertIn("torch.mode along more than 2,048 values is not supported", run.output)
        self.assertIn("torch.matrix_exp of a batch is not supported", run.output)
        if not older_than("2.5"):  # which cannot share expandable segments on a card either
            self.assertIn("does not support cuMemExportToShareableHandle", run.answer["faults"][0])

    def test_a_backend_that_records_nothing(self):
        run = self.record("mlp.py", environment={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
        self.assertEqual(run.status, 2, run.said)
        self.assertIn("backend:cudaMallocAsync: PyTorch keeps no record of memory there", run.output)

    def test_fast_init(self):
        run = self.record("large_init.py", flags=["--fast-init"])
        self.assertEqual(run.status, 0, run.said)

    def test_no_cuda(self):
        run = self.record("no_cuda.py")
        self.assertEqual((run.status, run.answer["processes"]), (0, []), run.said)
        self.assertFalse(os.path.exists(run.snapshot))

    def test_a_script_that_fails(self):
        run = self.record("fails.py")
        self.assertEqual((run.status, run.answer["exit_status"]), (1, 1))
        self.assertEqual(run.process["error"], "ValueError")
        self.assertRegex(run.answer["faults"][0], r"^ValueError: this program fails \(fails\.py:\d+\)$")
        self.holds(run, "fails.py")

    def test_module(self):
        pathlib.Path(self.folder, "package").mkdir()
        pathlib.Path(self.folder, "package", "__main__.py").write_text(
            "import sys, torch\ntorch.ones(5, device='cuda')\nassert sys.argv[1:] == ['--flag', 'x']\n",
            encoding="utf-8")
        run = Recorded(self.folder, ["-m", "package", "--flag", "x"])
        self.assertEqual(run.status, 0, run.said)



if __name__ == "__main__":
    sys.exit(main(RecordTest))
