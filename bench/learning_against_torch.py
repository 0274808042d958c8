#!/usr/bin/env python3
"""Does a language model learn with Snug as it does with PyTorch? Both train it on the same text with the same AdamW, schedule, windows of tokens and initial
distribution of weights; prints the validation losses and their ratio.

Usage: bench/learning_against_torch.py [--model gpt-small] [--data embedded-text] [--device cpu|cuda] [--batch 16] [--steps 1000] [--learning-rate 1e-3]
       [--warmup 100] [--precision fp32|bf16] [--budget BYTES] [--seeds 1] [--most 1.02] [--json FILE]
--data is embedded-text or one text file, read as bytes; its last tenth is the validation text. Which windows make a batch is drawn by each in its own
way. Needs a python with PyTorch, and snug from a build or from what scripts/bundle.sh packed. Ends with 1 where Snug's loss is more than --most times
PyTorch's.
"""
import argparse, json, math, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from against_torch import BUNDLE

BETAS, EPSILON, WEIGHT_DECAY, CLIP_NORM = (0.9, 0.95), 1e-8, 0.1, 1.0


def output(command):
    done = subprocess.run(command, stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"learning_against_torch: '{' '.join(command)}' ended with {done.returncode}")
    return done.stdout


def snug_command(options):
    return [BUNDLE, "snug"] if os.path.exists(BUNDLE) else [os.path.join(options.build, "snug")]


def train_snug(options, seed, folder):
    command = [*snug_command(options), "train", options.model, "--data", options.data, "--device", options.device, "--batch", str(options.batch),
               "--steps", str(options.steps), "--precision", options.precision, "--optimizer", "adamw", "--learning-rate", str(options.learning_rate),
               "--beta1", str(BETAS[0]), "--beta2", str(BETAS[1]), "--epsilon", str(EPSILON), "--weight-decay", str(WEIGHT_DECAY), "--clip-norm", str(CLIP_NORM),
               "--schedule", "cosine", "--warmup-steps", str(options.warmup), "--eval-every", str(options.steps), "--seed", str(seed),
               "--out", os.path.join(folder, f"run{seed}"), "--json"]
    done = json.loads(output(command + (["--budget", options.budget] if options.budget else [])))
    return {"loss": done["test_loss"], "bytes": done["measured_peak_bytes"], "seconds": done["seconds"]}


def learning_rate(options, step):
    """As src/train/schedule.cpp has it."""
    if step < options.warmup:
        return options.learning_rate * step / options.warmup
    return options.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - options.warmup) / (options.steps - options.warmup)))


def train_torch(options, seed, tokens, train_tokens):
    import torch
    from torch_language_step import LanguageModel
    torch.manual_seed(seed)
    if options.device == "cuda":
        torch.set_float32_matmul_precision("highest")
    model = LanguageModel(options.model, 0).to(options.device)
    length = model.context
    wide = torch.bfloat16 if options.precision == "bf16" else torch.float32
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}], options.learning_rate, BETAS, EPSILON)
    text = torch.tensor(list(tokens), dtype=torch.long)
    train, test = text[:train_tokens], text[train_tokens:]
    windows = (len(train) - 1) // length - 1
    order, shift = [], 0

    def window(of, begin):
        return of[begin:begin + length].to(options.device), of[begin + 1:begin + length + 1].to(options.device)

    def loss_of(x, y):
        with torch.autocast(options.device, torch.bfloat16, enabled=wide is torch.bfloat16):
            return model(x, y)

    for step in range(options.steps):
        if len(order) < options.batch:
            order += torch.randperm(windows).tolist()
            shift = int(torch.randint(length, ()))
        batch, order = order[:options.batch], order[options.batch:]
        pairs = [window(train, i * length + shift) for i in batch]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(options, step)
        optimizer.zero_grad(set_to_none=True)
        loss_of(torch.stack([x for x, _ in pairs]), torch.stack([y for _, y in pairs])).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
    total, count = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(test) - 1, length):
            x, y = window(test, begin)
            x = x[:len(y)]
            total += float(loss_of(x[None], y[None])) * len(y)
            count += len(y)
    return {"loss": total / count}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="gpt-small")
    parser.add_argument("--data", default="embedded-text")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--budget", default="")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most", type=float, default=1.02)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--json", default="", help="a file for the figures")
    options = parser.parse_args()
    snug = snug_command(options)
    info = json.loads(output([*snug, "data", "info", options.data, "--json"]))
    tokens = bytes(int(token) for token in output([*snug, "data", "tokens", options.data]).split())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            rows.append({"seed": seed, "snug": train_snug(options, seed, folder), "torch": train_torch(options, seed, tokens, info["train_tokens"])})
            print(json.dumps(rows[-1]), flush=True)
    mean = {who: sum(row[who]["loss"] for row in rows) / len(rows) for who in ("snug", "torch")}
    ratio = mean["snug"] / mean["torch"]
    print(f"{options.model} on {options.data}, {options.device} {options.precision}, {options.steps} steps of {options.batch}: validation loss {mean['snug']:.4f}, "
          f"PyTorch {mean['torch']:.4f}, {ratio:.4f} of it; {rows[0]['snug']['bytes']:,} bytes")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(vars(options) | {"rows": rows}, file, indent=1)
    sys.exit(0 if ratio <= options.most else 1)


if __name__ == "__main__":
    main()
