#!/usr/bin/env python3
"""Snug's language models beside Hugging Face's transformers, with the same weights on the same tokens: logits, gradients, and weights in both directions.

Usage: bench/against_transformers.py [--device cpu|cuda] [--cases gpt2:3:1000,llama-small:2:64] [--exchange gpt2] [--std 0.2]
       [--self-test]
A case is MODEL:EXAMPLES:LENGTH. Weights and biases are drawn with a standard deviation of 0.2 (norms 1 more), some labels are ignored and one example
is padded; everything is fp32 without TF32, and both are also compared with transformers' model in fp64: where that model in fp32 is itself further away
than the bound (peer_from_fp64), as wide models with large weights are, no other can be expected to meet it. An exchange trains a model for a few steps,
exports it as a folder, loads that with from_pretrained, saves it again and starts from that. Prints a JSON line for each and ends with 1 where logits
differ by more than 1e-4 of their standard deviation, a gradient's cosine is below 0.99999, or weights do not come back with the same bits.

Needs transformers, PyTorch, and the programs parity and snug: from a build (-DSNUG_BUILD_BENCH=ON) or from what scripts/bundle.sh packed, where this
script lies beside them. --self-test takes the plain PyTorch models of tests/golden/torch_language.py in transformers' place, and smaller cases.
"""
import argparse, json, math, os, struct, subprocess, sys, tempfile

import torch
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLE = os.path.join(os.path.dirname(HERE), "run.sh")
IGNORED = -100
MOST_DIFFERENCE, LEAST_COSINE = 1e-4, 0.99999
CASES = "gpt2:3:1000,gpt2:2:64,llama-small:3:1000,llama-small:2:64"
SMALL_CASES = "gpt-2-64:3:100,gpt-2-64:2:64,llama-2-128:3:100,llama-2-128:2:64"

MODELS = {
    "gpt-2-64": {"layers": 2, "width": 64, "heads": 2, "context": 256, "vocabulary": 256},
    "gpt-small": {"layers": 6, "width": 128, "heads": 4, "context": 256, "vocabulary": 256},
    "gpt2": {"layers": 12, "width": 768, "heads": 12, "context": 1024, "vocabulary": 50257},
    "gpt2-medium": {"layers": 24, "width": 1024, "heads": 16, "context": 1024, "vocabulary": 50257},
    "llama-2-128": {"layers": 2, "width": 128, "heads": 4, "kv_heads": 2, "hidden": 352, "context": 256, "vocabulary": 256},
    "llama-small": {"layers": 30, "width": 576, "heads": 9, "kv_heads": 3, "hidden": 1536, "context": 2048, "vocabulary": 49152},
}
TYPES = {"F32": torch.float32, "I32": torch.int32}


def write_safetensors(path, tensors):
    """The whole format: length, JSON header, bytes."""
    names = {dtype: name for name, dtype in TYPES.items()}
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().cpu().contiguous().numpy().tobytes())


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        data = bytearray(file.read())
    return {name: torch.frombuffer(data, dtype=TYPES[t["dtype"]], offset=t["data_offsets"][0], count=math.prod(t["shape"])).reshape(t["shape"])
            for name, t in header.items()}


class Transformers:
    """A model of Hugging Face's library."""
    title = "transformers"

    def __init__(self, model):
        self.model = model.eval()  # no dropout

    @staticmethod
    def make(name, device):
        import transformers
        m = MODELS[name]
        if name.startswith("gpt"):
            config = transformers.GPT2Config(vocab_size=m["vocabulary"], n_positions=m["context"], n_embd=m["width"], n_layer=m["layers"], n_head=m["heads"],
                                             activation_function="gelu_new", layer_norm_epsilon=1e-5, bos_token_id=None, eos_token_id=None)
        else:
            config = transformers.LlamaConfig(vocab_size=m["vocabulary"], max_position_embeddings=m["context"], hidden_size=m["width"],
                                              intermediate_size=m["hidden"], num_hidden_layers=m["layers"], num_attention_heads=m["heads"],
                                              num_key_value_heads=m["kv_heads"], rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=None,
                                              eos_token_id=None)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        return Transformers(model.float().to(device))

    @staticmethod
    def load(folder, name, device):
        import transformers
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
        return Transformers(model.float().to(device))

    def save(self, folder):
        self.model.save_pretrained(folder)

    def to_double(self):
        self.model = self.model.double()

    def parameters(self):
        return dict(self.model.named_parameters())

    def logits(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits


class Plain:
    """The same from tests/golden/torch_language.py, with transformers' names and layouts."""
    title = "plain PyTorch"
    TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")

    def __init__(self, name, tensors):
        self.name, self.tensors = name, tensors

    @staticmethod
    def functions():
        sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests", "golden"))
        import torch_language
        return torch_language

    @staticmethod
    def published(name):
        """For each parameter of the functions the tensors that it is made of, by name and shape."""
        m = MODELS[name]
        size, prefix = m["width"] // m["heads"], "transformer." if name.startswith("gpt") else ""
        for own, shape in Plain.functions().parameter_list(name, m):
            if "qkv_proj" in own:
                yield own, {own.replace("qkv", part): (heads * size, m["width"]) for part, heads in (("q", m["heads"]), ("k", m["kv_heads"]), ("v", m["kv_heads"]))}
            elif "gate_up_proj" in own:
                yield own, {own.replace("gate_up", part): (m["hidden"], m["width"]) for part in ("gate", "up")}
            else:
                rows = {"wte.weight": m["vocabulary"], "model.embed_tokens.weight": m["vocabulary"], "wpe.weight": m["context"]}.get(own, shape[0])
                shape = (rows, *shape[1:])
                yield own, {prefix + own: shape[::-1] if own.endswith(Plain.TRANSPOSED) else shape}

    @staticmethod
    def shapes(name):
        return {tensor: shape for _, tensors in Plain.published(name) for tensor, shape in tensors.items()}

    @staticmethod
    def make(name, device):
        return Plain(name, {tensor: torch.zeros(shape, device=device, requires_grad=True) for tensor, shape in Plain.shapes(name).items()})

    @staticmethod
    def load(folder, name, device):
        tensors = read_safetensors(os.path.join(folder, "model.safetensors"))
        different = {n: tuple(t.shape) for n, t in tensors.items()}.items() ^ Plain.shapes(name).items()
        if different:
            sys.exit(f"against_transformers: {folder} has other tensors than {name}: {sorted(different)[:6]}")
        return Plain(name, {n: t.to(device) for n, t in tensors.items()})

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        write_safetensors(os.path.join(folder, "model.safetensors"), self.tensors)

    def to_double(self):
        self.tensors = {n: t.detach().double().requires_grad_() for n, t in self.tensors.items()}

    def parameters(self):
        return self.tensors

    def logits(self, tokens):
        own = {}
        for name, parts in self.published(self.name):
            whole = torch.cat([self.tensors[part] for part in parts])
            own[name] = whole.T if name.endswith(self.TRANSPOSED) else whole
        functions = self.functions()
        return (functions.gpt if self.name.startswith("gpt") else functions.llama)(own, tokens, MODELS[self.name])


def draw(peer, std, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in peer.parameters().items():
            values = std * torch.randn(parameter.shape, generator=generator)
            is_norm = parameter.dim() == 1 and name.endswith(".weight")
            parameter.copy_(values + 1 if is_norm else values)


def make_batch(name, examples, length, seed):
    """Tokens, and as labels those that follow them: the last of each example is ignored, and a tenth of the others. Half of the last example is padding."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, MODELS[name]["vocabulary"], (examples, length), generator=generator)
    labels = torch.cat((tokens[:, 1:], torch.full((examples, 1), IGNORED)), 1)
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = IGNORED
    tokens[-1, length // 2:], labels[-1, length // 2 - 1:] = 0, IGNORED
    return tokens, labels


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, env={"OMP_WAIT_POLICY": "passive", **os.environ})
    if done.returncode != 0:
        sys.exit(f"against_transformers: '{' '.join(command)}' ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def snugs_pass(options, name, weights, tokens, labels, folder):
    """Loss, logits, gradients, and the weights as they are exported again."""
    batch, out = os.path.join(folder, "batch.safetensors"), os.path.join(folder, "results")
    write_safetensors(batch, {"tokens": tokens.int(), "labels": labels.int()})
    text = run([*options.parity, name, "--weights", weights, "--batch", batch, "--out", out, "--device", options.device])
    loss = json.loads([line for line in text.splitlines() if line.startswith("{")][-1])["loss"]
    return loss, read_safetensors(os.path.join(out, "logits.safetensors"))["logits"], read_safetensors(os.path.join(out, "gradients.safetensors")), read_safetensors(
        os.path.join(out, "weights.safetensors"))


def peers_pass(peer, device, tokens, labels):
    logits = peer.logits(tokens.to(device))
    loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.to(device).reshape(-1), ignore_index=IGNORED)
    parameters = peer.parameters()
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    return loss.item(), logits.detach().cpu(), {name: gradient.cpu() for name, gradient in zip(parameters, gradients)}


def largest_difference(a, b, std):
    return ((a.double() - b.double()).abs().max() / std).item()


def cosine(a, b):
    a, b = a.double().flatten(), b.double().flatten()
    lengths = (a.norm() * b.norm()).item()
    return (a @ b).item() / lengths if lengths > 0 else float(torch.equal(a, b))


def worst(gradients, expected):
    """The least cosine, whose it is, and the largest relative difference of two lengths."""
    cosines = {name: cosine(gradients[name], expected[name]) for name in expected}
    name = min(cosines, key=cosines.get)
    lengths = [abs(gradients[n].double().norm() / expected[n].double().norm() - 1).item() for n in expected if expected[n].norm() > 0]
    return cosines[name], name, max(lengths)


def compare(options, kind, name, examples, length):
    tokens, labels = make_batch(name, examples, length, seed=2)
    peer = kind.make(name, options.device)
    draw(peer, options.std, seed=1)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        weights = os.path.join(folder, "weights")
        peer.save(weights)
        loss, logits, gradients, again = snugs_pass(options, name, weights, tokens, labels, folder)
    peer_loss, peer_logits, peer_gradients = peers_pass(peer, options.device, tokens, labels)
    drawn = {n: p.detach().cpu() for n, p in peer.parameters().items()}
    peer.to_double()
    wide_loss, wide_logits, wide_gradients = peers_pass(peer, options.device, tokens, labels)
    std = wide_logits.std().item()
    row = {"case": f"{name}, {examples} x {length}", "std": options.std, "peer": kind.title, "device": options.device, "loss": loss, "peer_loss": peer_loss, "fp64_loss": wide_loss,
           "logits_std": std, "difference": largest_difference(logits, peer_logits, std), "peer_from_fp64": largest_difference(peer_logits, wide_logits, std),
           "snug_from_fp64": largest_difference(logits, wide_logits, std)}
    same_names = {n: tuple(g.shape) for n, g in gradients.items()} == {n: tuple(g.shape) for n, g in peer_gradients.items()}
    row["same_names_and_shapes"] = same_names
    row["weights_come_back"] = set(again) == set(drawn) and all(torch.equal(again[n], drawn[n]) for n in drawn)
    if same_names:
        row["least_cosine"], row["of_gradient"], row["lengths_differ"] = worst(gradients, peer_gradients)
        row["peer_cosine_to_fp64"], row["snug_cosine_to_fp64"] = worst(peer_gradients, wide_gradients)[0], worst(gradients, wide_gradients)[0]
    row["good"] = same_names and row["weights_come_back"] and row["difference"] <= MOST_DIFFERENCE and row["least_cosine"] >= LEAST_COSINE
    return row


def exchange(options, kind, name):
    """Trained here, exported, loaded there, saved there, and here again."""
    tokens, labels = make_batch(name, 2, 64, seed=3)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        trained, exported, saved = (os.path.join(folder, part) for part in ("run", "exported", "saved"))
        # A short text: a test of many windows takes long on a CPU.
        run([*options.snug, "train", name, "--data", os.path.abspath(__file__), "--length", "64", "--batch", "2", "--steps", "5", "--device", options.device, "--out", trained])
        run([*options.snug, "export", trained, "--to", exported + "/"])
        ours = read_safetensors(os.path.join(exported, "model.safetensors"))
        peer = kind.load(exported, name, options.device)
        with torch.no_grad():
            expected = peer.logits(tokens.to(options.device)).cpu()
        peer.save(saved)
        _, logits, _, again = snugs_pass(options, name, saved, tokens, labels, folder)
    difference = largest_difference(logits, expected, expected.std().item())
    comes_back = set(again) == set(ours) and all(torch.equal(again[n], ours[n]) for n in ours)
    return {"case": f"exchange of {name}", "peer": kind.title, "device": options.device, "difference": difference, "weights_come_back": comes_back,
            "good": comes_back and difference <= MOST_DIFFERENCE}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--cases", default="", help=f"with commas; default: {CASES}")
    parser.add_argument("--exchange", default="", help="models, with commas; default: gpt2 and llama-small")
    parser.add_argument("--std", type=float, default=0.2, help="of the drawn weights; see peer_from_fp64 for what fp32 can hold at it")
    parser.add_argument("--self-test", action="store_true", help="plain PyTorch in transformers' place, and small cases")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--folder", default=None, help="where temporary files go: some gigabytes")
    options = parser.parse_args()
    in_bundle = os.path.exists(BUNDLE)
    options.parity = [BUNDLE, "parity_pass"] if in_bundle else [os.path.join(options.build, "bench", "parity")]
    options.snug = [BUNDLE, "snug"] if in_bundle else [os.path.join(options.build, "snug")]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    kind = Plain if options.self_test else Transformers
    results = []
    for case in (options.cases or (SMALL_CASES if options.self_test else CASES)).split(","):
        name, examples, length = case.split(":")
        results.append(compare(options, kind, name, int(examples), int(length)))
        print(json.dumps(results[-1]), flush=True)
    for name in (options.exchange or ("gpt-2-64,llama-2-128" if options.self_test else "gpt2,llama-small")).split(","):
        results.append(exchange(options, kind, name))
        print(json.dumps(results[-1]), flush=True)
    sys.exit(0 if all(row["good"] for row in results) else 1)


if __name__ == "__main__":
    main()
