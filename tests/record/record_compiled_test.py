"""Checks that the compiler sees the same in compiled scripts (programs/compiled.py) with and without a recording.

Each runs under `memreplay record`, under it with --no-values, and with none of our Python, on a GPU that is the
simulated GPU's libraries. The graphs' code, each guard, and the numbers of graphs, breaks and recompilations are the
same.
"""
import json
import os
import subprocess
import sys

from recorded import Case, Setting, main, older_than, program


class RecordCompiledTest(Case):
    def variables(self, name):
        """Returns variables for caches of its own: what Inductor finds compiled it does not compile."""
        folder = os.path.join(self.folder, f"{name}-caches")
        os.mkdir(folder)
        return {"TMPDIR": folder, "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
                "TRITON_CACHE_DIR": os.path.join(folder, "triton"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}

    def rows(self, name, run):
        """Returns what each script wrote down, in a run by `run(words, variables)`."""
        out = os.path.join(self.folder, f"{name}.jsonl")
        run(["compiled.py", out, *self.names], self.variables(name))
        with open(out, encoding="utf-8") as file:
            return {row["name"]: row for row in map(json.loads, file)}

    def without_us(self, words, variables):
        gpu = self.gpu()
        done = subprocess.run([Setting.python, *program(*words)], capture_output=True, text=True, timeout=3000,
                              check=False, env={**os.environ, **gpu, **variables,
                                                "TRITON_LIBCUDA_PATH": gpu["LD_LIBRARY_PATH"]})
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])

    def recorded(self, *flags):
        def run(words, variables):
            self.run_now = self.record(*words, flags=["--ranks", "1", *flags], environment=variables, timeout=3000)
            self.assertEqual(self.run_now.status, 0, self.run_now.output[-2000:])
        return run

    def whole(self, names, settings):
        self.names = names
        plain = self.rows("plain", self.without_us)
        for name, flags in settings:
            found = self.rows(name, self.recorded(*flags))
            self.assertEqual(plain.keys(), found.keys())
            for program_name, row in plain.items():
                with self.subTest(program_name, setting=name):
                    self.assertEqual(row["error"], "")
                    self.assertEqual(found[program_name], row)
        return plain

    def test_whole_graphs(self):
        """Runs all scripts, and sums up."""
        plain = self.whole([], [("values", []), ("no-values", ["--no-values"])])
        self.assertGreaterEqual(len(plain), 24 if older_than("2.4") else 30, plain.keys())
        for row in plain.values():
            print(f"{row['name']}: {row['graphs']} graphs, {row['breaks']} breaks, "
                  f"{row['recompilations']} recompilations, {len(row['guards'])} guards")
        sums = [sum(row[key] for row in plain.values()) for key in ("graphs", "breaks", "recompilations")]
        print(f"| {Setting.torch} | {len(plain)} | {' | '.join(map(str, sums))} | "
              f"{sum(len(row['guards']) for row in plain.values()):,} |")  # a row of docs/record_internals.md

    def test_whole_graphs_quickly(self):
        """Runs a few scripts, and checks what the summary says about them."""
        names = ["module", "loss_of_softcapped_logits", "functions_that_ask_for_overrides", "shapes_that_change",
                 "breaks", "compiled_within_compiled", "traced_otherwise"]
        self.whole(names, [("values", [])])
        said = self.run_now.process["compilations"]
        place, = {row["place"] for row in said["breaks"]
                  if "print" in row["reason"] and row["place"].endswith(f":{BREAK}")}
        self.assertTrue(place.endswith(f"programs/compiled.py:{BREAK}"), said)
        self.assertEqual(sum(int(row["times"]) for row in said["recompilations"]) > 0, True, said)
        self.assertTrue(any("size mismatch" in row["reason"] for row in said["recompilations"]), said)
        self.assertGreaterEqual(int(said["graphs"]), 10)


def line_of(text):
    with open(program("compiled.py")[0], encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


BREAK = line_of('print("a break"')

if __name__ == "__main__":
    sys.exit(main(RecordCompiledTest))
