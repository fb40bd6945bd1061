#!/usr/bin/env python3
"""Generates random programs for the conformance harness, one per seed.

  generate.py --torch 2.15 --start 0 --seeds 100 --out DIR     writes DIR/SEED.jsonl
  generate.py --torch 2.15 --start 7                           prints one program

A program depends on the seed and on the release (its keys, its pool calls, its undefined states), and on nothing else.

The generator leaves out these states, which are undefined in PyTorch itself, so that no answer could be compared:

 1. A stream is recorded while a pool is being filled, on a block that is not freed before the pool is ended. The
    entry may later apply to another Block that gets the same host address, so such blocks are freed before `ep`.
 2. From 2.9 on, a capture defers more than one free. They are kept in a table keyed by host pointers.
 3. A pool's last `rp` comes while blocks of an expandable reservation of that pool are live or pending. The pool's
    segment count reaches 0 under them.
 4. max_split_size_mb is set or raised in mid-run, or expandable_segments is switched on in addition to it. A split
    block at or above the limit would be released alone. The option may be dropped for good. For the same reason, up
    to 2.4, no program has private pools and both options.
 5. Up to 2.6, a string ends inside a list; in any release, the header's string is invalid.
 6. Up to 2.4, release_available can meet an expandable block and throws out of malloc's middle. Only later releases
    get max_split_size_mb together with expandable_segments.
 7. graph_capture_record_stream_reuse is set and there are captures: it queries the driver for the nodes of a real
    graph.
 8. There are use-on-OOM pools and expandable_segments is set: exclusion 3 could not be kept, because a default block
    may lie in the pool.
 9. large_segment_size_mb is odd and expandable_segments is set: the pages are no multiple of the driver's granularity
    of 2 MiB, and a real driver refuses to create them.
10. Up to 2.14, a request is larger than a whole reservation, and the device has the pages for it (`endless`, which no
    card is). The library maps them all, has no block to go on with, and dies of a null pointer.
11. Up to 2.2, a pool ends that is not being filled. The refused call has already counted the captures underway down,
    once per stream, and every later call believes in a capture.
"""

import argparse
import json
import math
import pathlib
import random
import re
import sys

K, M, G = 1 << 10, 1 << 20, 1 << 30


class Release:
    def __init__(self, version):
        self.key = tuple(int(part) for part in re.findall(r"\d+", version)[:2])

    def since(self, major, minor):
        return self.key >= (major, minor)


class Generator:
    def __init__(self, seed, version):
        self.r = random.Random(f"conformance {seed}")
        self.rare = random.Random(f"rare {seed}")  # its own, so that most seeds give the same program as ever
        self.release = Release(version)
        self.records = []
        self.header = {"k": "h", "format": "memsched-flat", "version": 1, "seed": seed}
        self.live = {}          # id -> block facts
        self.next_id = 1
        self.contexts = []      # pools being filled, oldest first
        self.pools = {}         # pool id -> references this program holds
        self.destroyed = 0
        self.deferred = 0       # deferred frees that no malloc has dealt with yet
        self.max_split_dropped = False

    def emit(self, kind, **fields):
        self.records.append({"k": kind} | fields)

    def chance(self, p):
        return self.r.random() < p

    # ------------------------------------------------------------------------------------------------ settings

    def choose_features(self):
        r, release = self.r, self.release
        self.streams = r.choice([1, 1, 1, 2, 2, 3, 4, 5, 8])
        explicit = self.chance(0.7) and self.streams > 1
        if explicit:
            self.header["completion"] = "explicit"
        self.explicit = explicit
        self.pressure = self.chance(0.6)
        if self.pressure:
            self.total = r.choice([60 * M, 100 * M, 150 * M, 256 * M, 400 * M, G, r.randrange(40 * M, 2 * G),
                                   r.randrange(21, 600) * 2 * M])
        else:
            self.total = r.choice([8 * G, 24 * G, 80 * G, 12884705280])
        self.header["total"] = self.total
        keys = ["max_split", "gc", "roundup", "expandable", "lock", "nonsplit", "fraction_key", "large_segment",
                "throw", "reserve", "host", "reuse"]
        known = {"expandable": (2, 1), "lock": (2, 2), "nonsplit": (2, 6), "fraction_key": (2, 10),
                 "large_segment": (2, 11), "throw": (2, 12), "reserve": (2, 15), "host": (2, 6), "reuse": (2, 9)}
        keys = [k for k in keys if release.key >= known.get(k, (2, 0))]
        count = r.choice([0, 1, 1, 1, 2, 2, 2, 2, 3, 4])
        self.options = set(r.sample(keys, min(count, len(keys))))
        if "expandable" not in self.options and release.since(2, 1) and self.chance(0.2):
            self.options.add("expandable")
        if "nonsplit" in self.options and self.chance(0.8):
            self.options.add("max_split")
        if "reserve" in self.options:
            self.options.add("expandable")
        if "gc" in self.options or self.chance(0.25):
            self.limit = self.chance(0.85)
        else:
            self.limit = False
        if {"max_split", "expandable"} <= self.options and not release.since(2, 5):
            self.options.discard("max_split" if self.chance(0.5) else "expandable")  # exclusions 4 and 6
        self.with_pools = release.since(2, 1) and self.chance(0.35)
        if self.with_pools:
            self.options.discard("reuse")  # exclusion 7
        self.use_on_oom = (self.with_pools and release.since(2, 8) and "expandable" not in self.options
                           and self.chance(0.5))
        self.run_time_settings = self.chance(0.35)
        self.failures = self.chance(0.2)
        self.bad_calls = self.chance(0.05)
        # values that stay for the whole program
        lowest = 20 if release.since(2, 10) else 21
        self.large_segment = r.choice([11, 12, 16, 20, 21, 32, 64, 100]) if "large_segment" in self.options else 20
        self.max_split = (r.choice([lowest, 21, 22, 25, 40, 40, 64, 100, 200, 1000]) if "max_split" in self.options
                          else None)
        if "expandable" in self.options and self.large_segment % 2:
            self.large_segment += 1  # exclusion 9
        if self.max_split is not None:
            self.max_split = max(self.max_split, self.large_segment)
        self.expandable = "expandable" in self.options and self.chance(0.75)
        self.ever_expandable = self.expandable
        # Some requests exceed a whole reservation, and some devices never run out (as memreplay's without a capacity).
        self.giant = self.rare.random() < 0.04
        if self.giant and not self.pressure and "fraction_key" not in self.options and self.rare.random() < 0.5:
            if self.release.since(2, 15) and self.expandable:  # exclusion 10; and segments have 1 TB of addresses only
                del self.header["total"]
                self.header["endless"] = 1
                self.total = 1 << 40

    def non_split(self):
        lowest = max(20, self.large_segment) if self.release.since(2, 10) else 21
        return max(lowest, self.r.choice([20, 21, 25, 40, 100, 500]))

    def divisions(self):
        r = self.r
        if self.chance(0.5):
            return str(r.choice([1, 2, 2, 4, 4, 8, 16, 32, 64, 256]))
        choices = [1, 2, 4, 8, 16, 32] + ([0] if self.release.since(2, 4) else [])
        bounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 32768, 65536]
        items = [f"{b}:{r.choice(choices)}" for b in sorted(r.sample(bounds, r.randrange(1, 6)))]
        if self.chance(0.2):
            r.shuffle(items)
        if self.chance(0.5):
            items.append(f">:{r.choice(choices)}")
        return "[" + ",".join(items) + "]"

    def settings(self, first):
        r = self.r
        parts = []
        if self.max_split is not None and not self.max_split_dropped:
            if first or self.chance(0.85):
                parts.append(f"max_split_size_mb:{self.max_split}")
            else:
                self.max_split_dropped = True
        if "gc" in self.options and self.chance(0.9):
            parts.append("garbage_collection_threshold:"
                         f"{r.choice([0.01, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.999])}")
        if "roundup" in self.options and self.chance(0.9):
            parts.append(f"roundup_power2_divisions:{self.divisions()}")
        if "expandable" in self.options:
            if first:
                on = self.expandable
            else:
                on = self.chance(0.5)
                if on and not self.expandable and self.max_split is not None and not self.max_split_dropped:
                    on = False  # exclusion 4
            if first or on != self.expandable or self.chance(0.5):
                if on or not first or self.chance(0.5):
                    parts.append(f"expandable_segments:{on}")
                    self.expandable = on
                    self.ever_expandable |= on
        if "lock" in self.options:
            parts.append(f"release_lock_on_cudamalloc:{self.chance(0.5)}")
        if "nonsplit" in self.options and self.chance(0.8):
            parts.append(f"max_non_split_rounding_mb:{self.non_split()}")
        if "fraction_key" in self.options and (first or self.chance(0.3)):
            parts.append(f"per_process_memory_fraction:{r.choice([0.1, 0.3, 0.5, 0.75, 0.9, 1.0])}")
        if "large_segment" in self.options and (first or self.chance(0.5)):
            if not first and self.max_split is None and "nonsplit" not in self.options and self.chance(0.5):
                self.large_segment = r.choice([12, 16, 20, 32, 64])
            parts.append(f"large_segment_size_mb:{self.large_segment}")
        if "throw" in self.options:
            parts.append(f"throw_on_cudamalloc_oom:{self.chance(0.7)}")
        if "reserve" in self.options and (first or self.chance(0.3)):
            parts.append("expandable_segments_reserve:"
                         f"{r.choice(['0.5', '0.25', '1.0', '1.125', '2.0', '0.9', '1G', '40G', '0.05'])}")
        if "host" in self.options:
            parts.append("pinned_use_background_threads:False")
        if "reuse" in self.options:
            parts.append(f"graph_capture_record_stream_reuse:{self.chance(0.5)}")
        r.shuffle(parts)
        separator = r.choice([",", ",", ",", ", "])
        return separator.join(parts)

    BAD = ["foo:1", "max_split_size_mb:2", "garbage_collection_threshold:1.2", "roundup_power2_divisions:3",
           "roundup_power2_divisions:[3:4]", "max_split_size_mb:x", "garbage_collection_threshold:x"]

    def bad_settings(self):
        good = self.settings(False)
        self.max_split_dropped = True  # the parse resets it, and may end before it is read again
        bad = self.r.choice(self.BAD)
        return bad if self.chance(0.4) or not good else f"{good},{bad}" if self.chance(0.5) else f"{bad},{good}"

    # --------------------------------------------------------------------------------------------------- sizes

    def thresholds(self):
        out = [512, 1024, 4096, M, M + 512, 2 * M, 4 * M, 10 * M, 12 * M, 20 * M, 22 * M, 19 * M, 18 * M, 21 * M,
               40 * M]
        large = self.large_segment * M
        out += [large, large - M, large + 2 * M]
        if self.max_split is not None:
            limit = self.max_split * M
            out += [limit, limit, limit + 20 * M, limit - M, limit + large, limit // 2]
        if "roundup" in self.options:
            out += [1536, 2560, 3 * M, 5 * M, 6 * M, 48 * M, 80 * M]
        return out

    def size(self, style):
        r = self.r
        if self.giant and self.rare.random() < 0.02 and (self.expandable or "total" in self.header):
            return self.total + self.total // 8 + self.rare.choice(
                [-2 * M, 0, 1, 2 * M, self.total // 8, self.total, 30 * self.total])
        if style == "mixed":
            style = r.choice(["threshold", "log", "small", "large"])
        if style == "threshold":
            n = r.choice(self.thresholds()) + r.choice([0, 0, 0, 1, -1, 512, -512, 513, -513, 511, 1024, -1024])
        elif style == "log":
            n = int(math.exp(r.uniform(0, math.log(min(self.total, 2 * G)))))
        elif style == "small":
            n = r.choice([r.randrange(1, 4096), r.randrange(1, M + 1), r.randrange(1, 64) * 512])
        elif style == "large":
            n = r.choice([r.randrange(M, 64 * M), r.randrange(1, 64) * M, r.randrange(1, 32) * 2 * M])
        else:  # oversize
            unit = (self.max_split or 40) * M
            n = r.choice([unit, unit + r.randrange(0, 40) * M, unit + r.randrange(0, 20 * M),
                          unit - r.randrange(0, 2 * M), unit // 2])
        ceiling = (self.total + self.total // 4 if self.chance(0.01)
                   else max(4 * M, self.total // self.r.choice([2, 4, 8, 8, 16])))
        return max(1, min(n, ceiling))

    # ---------------------------------------------------------------------------------------------- operations

    def pool_of_next(self):
        if not self.contexts:
            return None
        return self.contexts[-1] if self.release.since(2, 10) else self.contexts[0]

    def deferring(self):
        """Returns whether a free with stream uses would be deferred now."""
        if self.release.since(2, 13):
            return any(pool[0] != 0 for pool in self.contexts)
        return bool(self.contexts)

    def alloc(self, size, stream=None):
        if stream is None:
            stream = 0 if self.streams == 1 or self.chance(0.4) else self.r.randrange(self.streams)
        identity = self.next_id
        self.next_id += 1
        fields = {"id": identity, "b": size}
        if stream:
            fields["s"] = stream
        self.emit("a", **fields)
        if size > 0 and not self.deferring():
            self.deferred = 0  # only a malloc deals with them
        self.live[identity] = {"stream": stream, "pool": self.pool_of_next(), "uses": False, "captured_use": False}
        return identity

    def free(self, identity):
        block = self.live[identity]
        if block["uses"] and self.deferring():
            others = self.deferred >= 1 or any(b["captured_use"] for b in self.live.values())
            if self.release.since(2, 9) and others and not block["captured_use"]:
                return False  # exclusion 2
            self.deferred += 1
        self.emit("f", id=identity)
        del self.live[identity]
        return True

    def use(self, identity):
        block = self.live[identity]
        if self.streams == 1:
            return
        stream = self.r.randrange(self.streams)
        if stream != block["stream"]:
            if block["pool"] is not None and self.ever_expandable:
                return  # exclusion 3
            if self.deferring():
                if self.release.since(2, 9) and (self.deferred >= 1
                                                 or any(b["captured_use"] for b in self.live.values())):
                    return  # exclusion 2
                block["captured_use"] = True
            block["uses"] = True
        self.emit("u", id=identity, s=stream)

    def begin_pool(self):
        one_only = not self.release.since(2, 3)
        if (one_only and self.contexts) or len(self.contexts) >= 3:
            return
        known = [p for p in self.pools if self.pools[p] > 0 and p not in self.contexts]
        graph = self.chance(0.3) and not any(p[0] != 0 for p in self.contexts)
        known = [p for p in known if (p[0] != 0) == graph]
        if known and self.chance(0.7):
            pool = self.r.choice(known)
        else:
            pool = (len(self.pools) + 1, 0) if graph else (0, len(self.pools) + 1)
            self.pools[pool] = 0
            if self.release.since(2, 6) and self.chance(0.4):
                flags = {}
                if self.use_on_oom and self.chance(0.6 if self.release.since(2, 11) else 0.3):
                    flags["oom"] = 1
                if self.release.since(2, 10) and self.chance(0.2):
                    flags["nosplit"] = 1
                self.emit("cp", p=list(pool), **flags)
                self.pools[pool] += 1
                if self.chance(0.3):
                    return
        self.emit("bp", p=list(pool))
        self.pools[pool] += 1
        self.contexts.append(pool)

    def end_pool(self, pool):
        if len(self.contexts) == 1 or not self.deferring_without(pool):
            for identity in [i for i, b in self.live.items() if b["captured_use"]]:
                self.free(identity)  # exclusion 1
        self.emit("ep", p=list(pool))
        self.contexts.remove(pool)
        if self.pools[pool] > 1 and self.chance(0.5):
            self.release_pool(pool)

    def deferring_without(self, pool):
        rest = [p for p in self.contexts if p != pool]
        if self.release.since(2, 13):
            return any(p[0] != 0 for p in rest)
        return bool(rest)

    def release_pool(self, pool):
        if self.pools[pool] == 1:
            if pool in self.contexts:
                return
            inside = [i for i, b in self.live.items() if b["pool"] == pool]
            if self.ever_expandable or self.chance(0.5):
                for identity in inside:
                    if not self.free(identity):
                        return
        last = self.pools[pool] == 1
        if last and self.release.since(2, 11) and self.chance(0.9):
            self.emit("cx", p=list(pool))
        self.emit("rp", p=list(pool))
        self.pools[pool] -= 1
        if (self.release.since(2, 8) and self.pools[pool] == 0
                and (not self.contexts or self.release.since(2, 13)) and self.chance(0.5)):
            self.emit("c", p=list(pool))

    def housekeeping(self):
        """Adds everything that is neither an allocation nor a free, each now and then."""
        r = self.r
        if self.streams > 1 and self.live and self.chance(0.12):
            self.use(r.choice(list(self.live)))
        if self.explicit and self.chance(0.08):
            self.emit("done", s=r.randrange(self.streams))
        if self.chance(0.012):
            self.emit("c")
        if self.chance(0.003):
            self.emit("x", n=r.choice(["reset_peak", "reset_accumulated"]))
        if self.run_time_settings and self.chance(0.01):
            bad = self.chance(0.2)
            self.emit("conf", v=self.bad_settings() if bad else self.settings(False))
        if self.limit and self.chance(0.005):
            self.emit("frac", v=r.choice([0.2, 0.5, 0.8, 0.95, 1.0]))
        if self.failures and self.chance(0.02):
            self.emit("fail", n=r.choice([1, 1, 1, 2, 3, 5]))
        if self.pressure and self.chance(0.003):
            self.emit("X", b=r.randrange(1, max(2, self.total // 4)), n="other")
        if self.pressure and self.chance(0.003):
            self.emit("Xf", n="other")
        if self.with_pools:
            if self.chance(0.04):
                self.begin_pool()
            if self.contexts and self.chance(0.06):
                self.end_pool(r.choice(self.contexts))
            held = [p for p, count in self.pools.items() if count > 0]
            if held and self.chance(0.02):
                self.release_pool(r.choice(held))
        if self.bad_calls and self.with_pools and self.chance(0.01):
            self.emit(r.choice(["ep", "rp"]) if self.release.since(2, 3) else "rp", p=[0, 77])

    # ------------------------------------------------------------------------------------------------ patterns

    def random_walk(self, steps, style):
        """Adds allocations and frees around a level that moves."""
        level = self.r.choice([3, 8, 20, 60])
        for _ in range(steps):
            if self.chance(0.01):
                level = self.r.choice([1, 3, 8, 20, 60])
            if self.live and self.r.random() < len(self.live) / (2 * level):
                order = list(self.live)
                pick = self.r.choice([order[0], order[-1], self.r.choice(order)])
                self.free(pick)
            else:
                self.alloc(self.size(style))
            self.housekeeping()

    def training(self, steps):
        """Adds layers whose activations are freed in reverse, gradients, and optimizer state in the first step."""
        r = self.r
        layers = r.randrange(2, 12)
        scale = max(512, int(math.exp(r.uniform(math.log(4 * K), math.log(max(8 * K, self.total // 64))))))
        weights = [max(1, int(scale * r.uniform(0.1, 1))) for _ in range(layers)]
        shapes = [[max(1, int(scale * r.choice([0.01, 0.5, 1, 1, 3, 4]))) for _ in range(r.randrange(1, 5))]
                  for _ in range(layers)]
        parameters = [self.alloc(w, 0) for w in weights]
        state = []
        end = len(self.records) + steps
        while len(self.records) < end:
            varied = r.choice([1, 1, 1, r.uniform(0.3, 1.7)])
            saved = []
            for layer in range(layers):
                temporary = self.alloc(max(1, int(scale * r.uniform(0.2, 2) * varied)))
                saved.append([self.alloc(max(1, int(s * varied))) for s in shapes[layer]])
                if temporary in self.live:
                    self.free(temporary)
                self.housekeeping()
            gradients = []
            for layer in reversed(range(layers)):
                gradients.append(self.alloc(weights[layer], 0))
                for identity in reversed(saved[layer]):
                    if identity in self.live:
                        self.free(identity)
                self.housekeeping()
            if not state:
                state = [self.alloc(w, 0) for w in weights for _ in range(2)]
            for identity in gradients:
                if identity in self.live:
                    self.free(identity)
        del parameters

    def checkerboard(self, steps):
        """Adds blocks side by side, frees every other one, then adds sizes that just fit or just do not."""
        end = len(self.records) + steps
        while len(self.records) < end:
            base = self.size("mixed")
            row = [self.alloc(base + self.r.choice([0, 0, 1, 512])) for _ in range(self.r.randrange(3, 16))]
            for identity in row[:: self.r.choice([2, 2, 3])]:
                if identity in self.live:
                    self.free(identity)
            for _ in range(self.r.randrange(1, 6)):
                self.alloc(max(1, base * self.r.choice([1, 1, 2, 1]) + self.r.choice([0, -512, 512, 1, -M, M])))
                self.housekeeping()
            for identity in list(self.live):
                if self.chance(0.6):
                    self.free(identity)
            self.housekeeping()

    def generate(self):
        self.choose_features()
        conf = self.settings(True)
        if conf or self.chance(0.1):
            self.header["conf"] = conf
        if self.limit and self.chance(0.8):
            self.header["fraction"] = self.r.choice([0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0, round(self.r.random(), 4)])
        length = self.r.choice([200, 300, 400, 600, 1000, 2000])
        while len(self.records) < length:
            steps = self.r.randrange(40, 300)
            pattern = self.r.random()
            if pattern < 0.6:
                self.random_walk(steps, self.r.choice(
                    ["threshold", "threshold", "log", "small", "large", "mixed", "oversize"]))
            elif pattern < 0.8:
                self.training(steps)
            else:
                self.checkerboard(steps)
            if self.chance(0.2):
                for identity in list(self.live):
                    self.free(identity)
            while self.contexts and self.chance(0.7):
                self.end_pool(self.contexts[-1])
        while self.contexts and self.chance(0.9):
            self.end_pool(self.contexts[-1])
        return "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in [self.header] + self.records)


def program(seed, version):
    return Generator(seed, version).generate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    for seed in range(options.start, options.start + options.seeds):
        if options.out is None:
            sys.stdout.write(program(seed, options.torch))
        else:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{seed}.jsonl").write_text(program(seed, options.torch))


if __name__ == "__main__":
    main()
