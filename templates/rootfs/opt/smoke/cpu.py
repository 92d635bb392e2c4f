"""The checks that need no GPU."""

import importlib
import importlib.util

import facts
from runner import Failed


def imports(context):
    """torch, torchvision and, where installed, torchaudio and triton import and name their versions"""
    import torch  # noqa: F401
    import torchvision  # noqa: F401

    context.detail["found"] = facts.found()
    for module in ("torchaudio", "triton"):
        if importlib.util.find_spec(module):
            importlib.import_module(module)


def cudnn_loads(context):
    """cuDNN loads, and is of a version this torch can work with"""
    import torch

    context.detail["version"] = torch.backends.cudnn.version()  # raises when it is older than what torch was built with
    if not context.detail["version"]:
        raise Failed("torch was built without cuDNN")


def torchvision_operators(context):
    """torchvision's compiled parts work: nms keeps the boxes it must, a PNG survives a round trip"""
    import torch
    import torchvision

    # The second box covers 0.68 of what it and the first have together, the third is apart.
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
    kept = torchvision.ops.nms(boxes, torch.tensor([0.8, 0.9, 0.7]), 0.5).tolist()
    context.detail["kept"] = kept
    if kept != [1, 2]:
        raise Failed(f"nms kept boxes {kept}, not [1, 2]")
    picture = torch.arange(3 * 8 * 8, dtype=torch.uint8).view(3, 8, 8)
    if not torch.equal(torchvision.io.decode_png(torchvision.io.encode_png(picture)), picture):
        raise Failed("a PNG was decoded to another picture than was encoded")


def matmul_backward(context):
    """matrix product, gradients: equal to the bit with sums done in plain Python"""
    import torch

    # Small whole numbers: every sum is exact in fp32, in whatever order a library adds.
    left = [[(3 * i + 5 * j) % 7 - 3 for j in range(96)] for i in range(64)]
    right = [[(2 * i + 7 * j) % 5 - 2 for j in range(80)] for i in range(96)]
    weights = [[(i * j) % 3 - 1 for j in range(80)] for i in range(64)]

    def product(a, b):
        columns = list(zip(*b))
        return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]

    a, b = (torch.tensor(m, dtype=torch.float32, requires_grad=True) for m in (left, right))
    output = a @ b
    (output * torch.tensor(weights)).sum().backward()
    expected = {
        "product": (output, product(left, right)),
        "left gradient": (a.grad, product(weights, list(zip(*right)))),
        "right gradient": (b.grad, product(list(zip(*left)), weights)),
    }
    wrong = [name for name, (got, known) in expected.items() if got.tolist() != known]
    context.detail.update(numbers=sum(got.numel() for got, _ in expected.values()), threads=torch.get_num_threads())
    if wrong:
        raise Failed(f"wrong on the CPU: {', '.join(wrong)}")


def compile_cpu(context):
    """torch.compile works: a C++ compiler, the interpreter's headers and a place for the result are here"""
    import torch
    import work

    context.detail.update(work.compiled(torch.device("cpu")))
    work.judge("compiled against eager", context.detail)
    if not context.detail["objects"]:
        raise Failed("torch.compile returned the right numbers without compiling anything")


def dataloader_workers(context):
    """a DataLoader gets every sample from two worker processes, through shared memory"""
    import torch
    import work

    context.detail.update(work.load(torch.device("cpu")))
