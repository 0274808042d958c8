#!/usr/bin/python3
"""Weights from Snug to torchvision and back: both must give the same logits for the same weights and images.

usage: /usr/bin/python3 scripts/exchange_with_torchvision.py [--test-program build/release/tests/snug_end_to_end_test] [MODEL...]
Needs Debian's python3-torchvision and a built test program; exits with 1 when logits differ by more than 1e-4, or 1e-4 of the
largest where that is more.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision

# Snug's name: torchvision's maker, image size. Snug's vgg-16 has torchvision's classifier only at 224 pixels.
MODELS = {
    "resnet-18": (torchvision.models.resnet18, 64),
    "resnet-50": (torchvision.models.resnet50, 64),
    "vgg-16": (torchvision.models.vgg16, 224),
}
TYPES = {"F64": numpy.float64, "F32": numpy.float32, "I64": numpy.int64}
TOLERANCE = 1e-4


def write_safetensors(path, tensors):
    """The whole format: length, JSON header, bytes."""
    names = {numpy.dtype(t): name for name, t in TYPES.items()}
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*t["data_offsets"])], TYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}


def load_strictly(model, tensors):
    """Every tensor must be there and known; only the counters of batches are torchvision's own."""
    counters = {n: t for n, t in model.state_dict().items() if n.endswith("num_batches_tracked")}
    model.load_state_dict({**{n: torch.tensor(t) for n, t in tensors.items()}, **counters}, strict=True)


def logits_of(model, images):
    with torch.no_grad():
        return model.eval()(torch.tensor(images)).double().numpy()


def compare(what, ours, theirs):
    difference = float(numpy.abs(ours.reshape(theirs.shape) - theirs).max())
    largest = float(numpy.abs(theirs).max())
    good = difference <= TOLERANCE * max(1.0, largest)
    print(f"  {what}: logits up to {largest:.3g}, largest difference {difference:.2g}: {'good' if good else 'TOO FAR'}", flush=True)
    return good


def exchange(name, program):
    make, size = MODELS[name]
    torch.manual_seed(1)
    model = make()
    generator = numpy.random.default_rng(2)
    images = generator.standard_normal((4, 3, size, size)).astype(numpy.float32)
    # Running statistics that are not the ones every model begins with.
    model.train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.tensor(generator.standard_normal((8, 3, size, size)).astype(numpy.float32)))
    print(name)
    with tempfile.TemporaryDirectory() as folder:
        at = lambda file: os.path.join(folder, file)
        write_safetensors(at("images.safetensors"), {"images": images})
        write_safetensors(at("torch.safetensors"), {n: t.numpy() for n, t in model.state_dict().items()})
        expected = logits_of(model, images)
        subprocess.run([program, "--gtest_filter=TorchvisionExchange.*", "--gtest_brief=1"], check=True,
                       env={**os.environ, "SNUG_EXCHANGE_FOLDER": folder, "SNUG_EXCHANGE_MODEL": name})
        good = compare("torchvision's weights in Snug", read_safetensors(at("logits_of_torch.safetensors"))["logits"], expected)
        load_strictly(model, read_safetensors(at("snug.safetensors")))
        ours = read_safetensors(at("logits_of_snug.safetensors"))["logits"]
        return compare("Snug's weights in torchvision", ours, logits_of(model, images)) and good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="resnet-18, resnet-50, vgg-16 (default: all)")
    parser.add_argument("--test-program", default="build/release/tests/snug_end_to_end_test")
    args = parser.parse_args()
    unknown = [m for m in args.models if m not in MODELS]
    if unknown:
        parser.error(f"no model {unknown[0]}; there are {', '.join(MODELS)}")
    results = [exchange(name, args.test_program) for name in args.models or MODELS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
