#!/usr/bin/python3
"""Names and shapes of torchvision's models, and the logits of its ResNet-50 with weights from a formula.

usage: /usr/bin/python3 torchvision_models.py        (Debian's python3-torchvision, no network, under a minute)
Writes torchvision_names.json and torchvision_resnet_50.json beside itself. README.md has the formula.
"""

import json
import os

import numpy
import torch
import torchvision

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"resnet-18": torchvision.models.resnet18, "resnet-50": torchvision.models.resnet50, "vgg-16": torchvision.models.vgg16}
IMAGES, SIZE, INPUT_STREAM = 2, 64, 1000


def uniform(stream, count):
    """[0, 1) from splitmix64, as README.md says."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64((stream << 32) + 0x9E3779B97F4A7C15) + numpy.arange(count, dtype=numpy.uint64)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return (z >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53


def tensors_of(model):
    """Name and shape of what weight files hold: everything but the counters of batches."""
    return [(n, list(t.shape)) for n, t in model.state_dict().items() if not n.endswith("num_batches_tracked")]


def weight(number, name, shape):
    count = int(numpy.prod(shape))
    u = uniform(number, count)
    if len(shape) > 1:
        values = (2.0 * u - 1.0) * numpy.sqrt(6.0 / (count // shape[0]))
    elif name.endswith("running_var"):
        values = 0.5 + u
    elif name.endswith(".weight"):  # of batch norm; the last of a block is small, so that sums of blocks stay small
        values = (0.2 if name.endswith("bn3.weight") else 0.5) * (1.0 + u)
    else:
        values = 0.1 * (2.0 * u - 1.0)
    return torch.tensor(values.astype(numpy.float32)).reshape(shape)


def main():
    names = {name: tensors_of(make()) for name, make in MODELS.items()}
    with open(os.path.join(HERE, "torchvision_names.json"), "w", encoding="utf-8") as file:
        models = ",\n".join(json.dumps(name) + ": [\n  " + ",\n  ".join(json.dumps(t) for t in tensors) + "]"
                            for name, tensors in names.items())
        file.write("{" + models + "}\n")

    model = torchvision.models.resnet50().eval()
    weights = {name: weight(i, name, shape) for i, (name, shape) in enumerate(names["resnet-50"])}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and all(n.endswith("num_batches_tracked") for n in missing)
    x = 2.0 * uniform(INPUT_STREAM, IMAGES * 3 * SIZE * SIZE) - 1.0
    x = torch.tensor(x.astype(numpy.float32)).reshape(IMAGES, 3, SIZE, SIZE)
    with torch.no_grad():
        single = model(x)
        logits = model.double()(x.double())  # the weights are floats; the sums are not rounded to floats
    print(f"logits from {logits.min():.4f} to {logits.max():.4f}; "
          f"torchvision in fp32 is {(single.double() - logits).abs().max():.2g} away")
    with open(os.path.join(HERE, "torchvision_resnet_50.json"), "w", encoding="utf-8") as file:
        rows = ",\n".join("[" + ", ".join(f"{v:.9g}" for v in row.tolist()) + "]" for row in logits)
        file.write(f'{{"torch": "{torch.__version__}", "torchvision": "{torchvision.__version__}", "image_size": {SIZE},\n'
                   f'"first_weights": {json.dumps(weights["conv1.weight"].flatten()[:4].tolist())},\n"logits": [{rows}]}}\n')


if __name__ == "__main__":
    main()
