from functools import cache

import pytest
import torch

from fedsampling.base.errors import InputError
from fedsampling.learning.models import products

SHAPES = [(50, 784, 50), (50, 50, 10), (8, 500, 1), (1, 784, 10), (1, 600, 1), (20, 3, 70)]
SMALL = [(1, 8, 64), (1, 500, 8), (4, 100, 2), (8, 2, 5), (2, 20, 10)]
ODD = [(9, 51, 10), (10, 33, 7), (37, 250, 10), (1, 51, 10)]  # slots of no multiple of 16 bytes


def factors(slots, rows, inputs, outputs):
    """Random samples and weights, and the gradient with respect to their product."""
    rng = torch.Generator().manual_seed(0)
    shapes = (rows, inputs), (outputs, inputs), (rows, outputs)
    return [torch.randn(slots, *shape, generator=rng) for shape in shapes]


def moved(matrix, offset):
    """Copy a matrix to memory that begins `offset` numbers after an aligned address."""
    room = torch.empty(matrix.numel() + offset)
    return room[offset:].view(matrix.shape).copy_(matrix)


def stepped(x, weight):
    """Take a recurrent layer's step from zero."""
    start = x.new_zeros(len(x), x.shape[1], weight.shape[1])
    return products.add_product(x, products.prepared(weight, x.shape[1]), start)


@pytest.fixture(params=["oneDNN", "MKL"])
def library(request, monkeypatch):
    if request.param == "oneDNN" and not products._has_onednn():
        pytest.skip("this PyTorch has no oneDNN product")
    monkeypatch.setattr(products, "library", lambda: request.param)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_products_sums_and_gradients_are_those_of_matrices(library, rows, inputs, outputs):
    x, weight, g = factors(3, rows, inputs, outputs)
    z = products.product(x.requires_grad_(), weight.requires_grad_())
    by_x, by_weight = torch.autograd.grad(z, (x, weight), g)
    sums = products.add_product(x, products.prepared(weight, rows), g)
    close = {"rtol": 1e-5, "atol": 1e-4}
    for slot in range(3):
        torch.testing.assert_close(sums[slot], g[slot] + x[slot] @ weight[slot].T, **close)
        torch.testing.assert_close(z[slot], x[slot] @ weight[slot].T, **close)
        torch.testing.assert_close(by_x[slot], g[slot] @ weight[slot], **close)
        torch.testing.assert_close(by_weight[slot], g[slot].T @ x[slot], **close)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_results_do_not_depend_on_memory_alignment(library, rows, inputs, outputs):
    x, weight, g = factors(1, rows, inputs, outputs)

    def results(offset):
        moved_x = moved(x, offset).requires_grad_()
        moved_weight = moved(weight, 3 * offset % 16).requires_grad_()
        z = products.product(moved_x, moved_weight)
        return z, *torch.autograd.grad(z, (moved_x, moved_weight), moved(g, offset))

    expected = results(0)
    for offset in range(1, 16):
        for result, first in zip(results(offset), expected, strict=True):
            assert torch.equal(result, first)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES + SMALL + ODD)
def test_results_do_not_depend_on_a_slots_position(library, rows, inputs, outputs):
    x, weight, g = factors(5, rows, inputs, outputs)
    operations = {products.multiply: (x, weight), products.gradient: (g, x), stepped: (x, weight)}
    for operation, pair in operations.items():
        stacked = operation(*pair)
        for slot in range(5):
            single = operation(*(factor[slot, None].clone() for factor in pair))
            assert torch.equal(stacked[slot], single[0])


@pytest.fixture
def unreliable(monkeypatch):
    """Use a library that rounds by the number of matrices; keep the real one's cached facts."""
    batched = torch.bmm
    monkeypatch.setattr(torch, "bmm", lambda x, right: batched(x, right) * (1 + 1e-6 * len(x)))
    monkeypatch.setattr(products, "_is_independent", cache(products._is_independent.__wrapped__))
    monkeypatch.setattr(products, "_print_slow", cache(products._print_slow.__wrapped__))


def test_a_library_whose_rounding_depends_on_the_stack_is_detected(unreliable, library, capsys):
    for shape in [(8, 20, 12), (4, 50, 10)]:
        x, weight, _ = factors(5, *shape)
        for operation in (products.multiply, stepped):
            stacked = operation(x, weight)
            torch.testing.assert_close(stacked, x @ weight.mT, rtol=1e-5, atol=1e-5)
            for slot in range(5):
                single = operation(x[slot, None].clone(), weight[slot, None].clone())
                assert torch.equal(stacked[slot], single[0])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fedsampling: ")


def rounding_by_size(factor, axis):
    """A library whose result depends on a factor's rows, if `factor` is not zero."""
    right = products._slot_by_slot
    return lambda *factors: right(*factors) * (1 + factor * factors[axis].shape[1])


@pytest.mark.parametrize("wrong", [0, 1e-6])
@pytest.mark.parametrize(
    ("common", "rows", "inputs", "outputs"),
    [("x", 100, 784, 50), ("x", 40, 700, 10), ("weight", 50, 784, 100), ("weight", 10, 700, 40)],
)
def test_slots_with_a_common_factor_agree_with_single_slots(
    library, common, rows, inputs, outputs, wrong, monkeypatch
):
    axis = 1 if common == "x" else 0
    monkeypatch.setattr(products, "_slot_by_slot", rounding_by_size(wrong, axis))
    monkeypatch.setattr(products, "_is_exact", cache(products._is_exact.__wrapped__))
    x, weight, _ = factors(4, rows, inputs, outputs)
    if common == "x":
        x = x[:1].expand(4, -1, -1)
    else:
        weight = weight[:1].expand(4, -1, -1)
    stacked = products.multiply(x, weight)
    for slot in range(4):
        assert torch.equal(stacked[slot], products.multiply(x[slot, None], weight[slot, None])[0])


@pytest.mark.parametrize("outputs", [10, 50])
@pytest.mark.parametrize("offset", [0, 3])
def test_products_are_subtracted(library, outputs, offset):
    x, weight, g = factors(3, 40, 300, outputs)
    g = g.mT.contiguous()
    result = moved(weight, offset)
    products.subtract_product(result, g, x)
    torch.testing.assert_close(result, weight - g @ x, rtol=1e-5, atol=1e-4)
    single = moved(weight[1:2], 0)
    products.subtract_product(single, g[1:2].clone(), x[1:2].clone())
    assert torch.equal(single[0], result[1])


@pytest.fixture
def undecided(monkeypatch):
    """Decide on a library again, in this test only."""
    monkeypatch.setattr(products, "library", cache(products.library.__wrapped__))
    monkeypatch.delenv(products.VARIABLE, raising=False)


def test_an_unknown_library_is_an_error_of_one_line(undecided, monkeypatch):
    monkeypatch.setenv(products.VARIABLE, "blas")
    with pytest.raises(InputError, match="'blas' is unknown; must be mkl, onednn or auto"):
        products.library()


def test_mkl_is_the_fallback_without_onednn(undecided, monkeypatch):
    def missing(*factors):
        raise AttributeError("_linear_pointwise")

    monkeypatch.setattr(products, "_onednn", missing)
    monkeypatch.setattr(products, "_has_onednn", products._has_onednn.__wrapped__)
    monkeypatch.setenv(products.VARIABLE, "onednn")
    assert products.library() == "MKL"
    assert products.libraries().keys() == {"MKL"}
    x, weight = torch.rand(2, 50, 784), torch.rand(2, 50, 784)
    torch.testing.assert_close(products.multiply(x, weight), x @ weight.mT)
