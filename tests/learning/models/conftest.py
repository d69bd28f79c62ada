import pytest
import torch
from torch.nn.utils import parameters_to_vector


@pytest.fixture
def agree():
    """Compare a network with one plain module per slot: outputs, and gradients of all parameters.

    The modules' parameters have the order of the network's.
    """

    def check(network, modules, inputs, x, tolerance=1e-5):
        theta = torch.stack([parameters_to_vector(module.parameters()) for module in modules])
        assert theta.shape == (len(modules), network.dimension)
        theta = theta.detach().requires_grad_()
        z = network.outputs(theta, x)
        expected = torch.stack([module(slot) for module, slot in zip(modules, inputs, strict=True)])
        torch.testing.assert_close(z, expected, rtol=tolerance, atol=tolerance)

        weight = torch.randn(z.shape, generator=torch.Generator().manual_seed(9), dtype=z.dtype)
        (gradient,) = torch.autograd.grad((weight * z).mean() * len(z), theta)
        (weight * expected).mean().mul(len(z)).backward()
        by_module = [torch.cat([p.grad.flatten() for p in m.parameters()]) for m in modules]
        torch.testing.assert_close(gradient, torch.stack(by_module), rtol=tolerance, atol=tolerance)

    return check
