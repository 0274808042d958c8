#!/usr/bin/env python3
"""What a machine with a GPU must show of a build, several checks at a time, each with its own log and a line as soon as it ends.

Usage: bench/gpu_check.py [--seconds 240] [--logs gpu_check] [--only conformance,offload] [--list]
Correctness alone, nothing here is timed: conformance of every backend, the same bits under every checkpointing strategy, offloaded activations, a run in
CIFAR-10's shape within 6.7 MB on the CPU, the example of a run on the GPU, moments in 8 bits, the driver's bytes, and, where PyTorch and transformers are installed,
language models beside them. Lies in what scripts/bundle.sh packs (run.sh check). Ends with 1 where a check fails or does not end in time.
"""
import argparse, importlib.util, json, os, random, subprocess, sys, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
RUN = os.path.join(ROOT, "run.sh")
LANGUAGE = ["--lr", "0.0003"]


def commands(logs):
    """name -> commands, one after the other; all must end with 0."""
    snug, data = [RUN, "snug"], os.path.join(logs, "cifar10")
    train = [*snug, "train", "wrn-28-2", "--data", data, "--device", "cuda", "--batch", "100", "--steps", "10", "--seed", "1"]
    offloaded, plain = os.path.join(logs, "offloaded"), os.path.join(logs, "plain")
    checks = {
        "conformance": [[RUN, "conformance", "--gtest_brief=1"]],
        "conformance_cpu": [[RUN, "conformance", "--gtest_filter=-*cuda*", "--gtest_brief=1"]],
        "exactness": [[RUN, "exactness", "--device", "cuda", "--models", "wrn-28-2:100,wrn-28-2:100:30,small-cnn:100"]],
        "exactness_resnet": [[RUN, "exactness", "--device", "cuda", "--models", "resnet-50:16"]],
        "exactness_gpt": [[RUN, "exactness", "--device", "cuda", "--models", "gpt-small:16:5,llama-small:2::128", *LANGUAGE]],
        "exactness_bf16": [[RUN, "exactness", "--device", "cuda", "--models", "gpt2:4::256", "--precision", "bf16", *LANGUAGE]],
        "offload": [[*train, "--out", offloaded, "--offload", "yes"], [*train, "--out", plain],
                    [*snug, "export", offloaded, "--to", offloaded + ".safetensors"], [*snug, "export", plain, "--to", plain + ".safetensors"],
                    ["cmp", offloaded + ".safetensors", plain + ".safetensors"]],
        "recipe_6.7MB": [[*snug, "train", os.path.join(ROOT, "recipes", "wrn-28-2-6.7MB.toml"), "--data", data, "--steps", "4", "--out", os.path.join(logs, "6.7MB")]],
        "example": [[RUN, "example", "run_a_recipe", "cuda"]],
        "generate": [[*snug, "train", "gpt-small", "--device", "cuda", "--batch", "16", "--steps", "60", "--budget", "30MB", "--out", os.path.join(logs, "gpt")],
                     [*snug, "generate", os.path.join(logs, "gpt"), "--prompt", "Call me ", "--device", "cuda"]],
        "moments_8bit": [[*snug, "train", "gpt-small", "--device", "cuda", "--precision", "bf16", "--moment-bits", "8", "--fuse-update", "yes",
                          "--batch", "16", "--steps", "100", "--out", os.path.join(logs, "moments")]],
        "driver_bytes": [[RUN, "driver_bytes", "--only", "training", "--smi"]],
    }
    if importlib.util.find_spec("transformers"):
        checks["parity"] = [[RUN, "parity", "--device", "cuda", "--std", "0.05"]]
    if importlib.util.find_spec("torch"):
        checks["learning"] = [[RUN, "learning", "--device", "cuda", "--steps", "1000"]]
    return checks


def write_random_images(folder):
    """CIFAR-10's files with random pixels, for runs of a few steps."""
    os.makedirs(folder, exist_ok=True)
    draw = random.Random(0)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        with open(os.path.join(folder, name + ".bin"), "wb") as file:
            for _ in range(2000):
                file.write(bytes([draw.randrange(10)]) + draw.randbytes(3072))
    with open(os.path.join(folder, "batches.meta.txt"), "w") as file:
        file.write("\n".join(f"class{i}" for i in range(10)) + "\n")


def run_check(name, steps, logs, deadline, results):
    begin, code, path = time.monotonic(), 0, os.path.join(logs, name + ".log")
    with open(path, "wb") as log:
        for step in steps:
            try:
                code = subprocess.run(step, stdout=log, stderr=subprocess.STDOUT, timeout=max(1, deadline - time.monotonic())).returncode
            except subprocess.TimeoutExpired:
                code = "no end in time"
            if code != 0:
                break
    with open(path, errors="replace") as log:
        last = [line.strip() for line in log if line.strip()][-1:]
    results[name] = {"result": code, "seconds": round(time.monotonic() - begin, 1), "last": last[0][:160] if last else ""}
    print(json.dumps({"check": name, **results[name]}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=240, help="for all of them together")
    parser.add_argument("--logs", default="gpu_check", help="a folder for logs and runs")
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    logs = os.path.abspath(options.logs)
    checks = commands(logs)
    chosen = options.only.split(",") if options.only else list(checks)
    if unknown := [name for name in chosen if name not in checks]:
        sys.exit(f"gpu_check: there is no check '{unknown[0]}'; there are {', '.join(checks)}")
    if options.list:
        return print("\n".join(" && ".join(" ".join(step) for step in checks[name]) for name in chosen))
    os.makedirs(logs, exist_ok=True)
    write_random_images(os.path.join(logs, "cifar10"))
    subprocess.run([RUN, "snug", "--version"], check=True, capture_output=True)
    deadline, results = time.monotonic() + options.seconds, {}
    threads = [threading.Thread(target=run_check, args=(name, checks[name], logs, deadline, results)) for name in chosen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bad = [name for name in chosen if results[name]["result"] != 0]
    print(f"gpu_check: {len(chosen) - len(bad)} of {len(chosen)} hold" + (f"; not: {', '.join(bad)}" if bad else ""))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
