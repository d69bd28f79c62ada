"""On a GPU: cuDNN needs aligned parameters; its defaults are neither precise nor repeatable."""

import numpy as np
import pytest
import torch

from fedsampling.learning.models.devices import precise
from fedsampling.learning.models.network import aligned


@pytest.mark.parametrize("shape", [(3, 2), (5, 1, 3, 3), (8,)])
def test_aligned_parameters_have_the_same_values_and_gradients(shape):
    flat = torch.arange(3 * 75.0).reshape(3, 75).requires_grad_()  # 75 numbers: slots are unaligned
    part = flat[:, 1 : 1 + np.prod(shape)].view(3, *shape)
    copy = aligned(part)
    assert all(slot.data_ptr() % 16 == 0 and slot.is_contiguous() for slot in copy)
    assert torch.equal(copy, part)
    (gradient,) = torch.autograd.grad((copy**2).sum(), flat)
    assert torch.equal(gradient, torch.autograd.grad((part**2).sum(), flat)[0])
    assert aligned(copy) is copy


def test_a_gpu_convolves_in_single_precision_and_deterministically():
    cudnn, before = torch.backends.cudnn, torch.backends.cudnn.allow_tf32
    with precise("cuda"):
        assert (cudnn.enabled, cudnn.deterministic, cudnn.allow_tf32) == (True, True, False)
    assert cudnn.allow_tf32 == before
