"""A user's script with one deliberate error for each public function; type checkers must find all.

The lines that end in ``# wrong`` are the errors.  The script is not executed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from torch import nn

import fedsampling as fs
from fedsampling.base.records import Positive
from fedsampling.samplers.oort import Oort

x, y = np.zeros((40, 3)), np.zeros(40, np.int64)
frame = pd.DataFrame({"site": ["a", "b"], "height": [1.0, 2.0], "ill": [0, 1]})


class ByLoss(fs.Sampler, name="by_loss"):
    m: Positive
    needs = {"losses"}
    unbiased = False

    def select(self, view, rng):
        return view.losses.argsort()[-self.m :]


class Stacked(fs.Scheme, name="stacked"):
    m: Positive


# Loading data.
data = fs.load("mnist", fs.partitions.AllByDirichlet(alpha=0.1, clients=30), data="embedded")
fs.load("mnist", "by_digit", data="offical")  # wrong
fs.load("mnist", "by_digit", fractoin=0.1)  # wrong
fs.partitions.ByDigit(clients_per_label=10)
fs.partitions.ByDigit(clients_per_label="ten")  # wrong
fs.partitions.ByDigits(clients_per_label=10)  # wrong
fs.federated(x, y, clients=np.arange(40) // 4, test_share=0.2)
fs.federated(x, y, client=np.arange(40) // 4)  # wrong
fs.from_clients({"a": (x, y), "b": (x, y)})
fs.from_clients(5)  # wrong
fs.from_frame(frame, target="ill", client="site")
fs.from_frame(frame, target="ill", clients="site")  # wrong
fs.from_huggingface([], target="ill", client=3)  # wrong
fs.datasets(3)  # wrong

# Samplers.
md = fs.scheme("md", m=4)
Oort(m=3, window=5)
fs.scheme(4)  # wrong
fs.check_sampler("md")  # wrong
ByLoss(m="many")  # wrong
ByLoss(m=4).sellect  # wrong
Stacked(n=4)  # wrong
fs.Slots.stack(np.zeros((2, 3), np.int64)).clients  # wrong
fs.samplers(3)  # wrong

# Training.
history = fs.train(
    data, ByLoss(m=4), model="mlp", steps=5, batch=10, step=0.1, rounds=5, momentum=0.9
)
fs.train(data, md, model=nn.Linear(3, 2), epochs=1, batch=10, step=0.1, rounds=5)
fs.train(data, md, model="mlp", steps=5, batch=10, lr=0.1, rounds=5)  # wrong
fs.train(data, md, model="mlp", steps=5, batch="10", step=0.1, rounds=5)  # wrong
fs.train(data, md, model="mlp", steps=5, batch=10, step=0.1, rounds=5, momentum="0.9")  # wrong
table = fs.compare([md, ByLoss(m=4)], data, model="mlp", steps=5, batch=10, step=0.1, rounds=5)
fs.compare([md], data, model="mlp", steps=5, batch=10, step=0.1, round=5)  # wrong
fs.compare({"md": history}, metrik="loss")  # wrong
fs.tune([md], data, {"step": [0.1, 1.0]}, model="mlp", steps=5, batch=10, rounds=5)
fs.tune([md], data, [0.1, 1.0], model="mlp", steps=5, batch=10, rounds=5)  # wrong

# Results.
fs.by_client(history, 3)  # wrong
fs.left_out({"md": history}, by="group")  # wrong
fs.plot({"md": history}, x="rounds", axes=plt.gca())
fs.plot(history, xs="rounds")  # wrong
fs.to_latex(table)
fs.to_latex(3)  # wrong
fs.summary("rizk2022importance")  # wrong
fs.render("rizk2022importance", "figure1", size="3.3x2.2")  # wrong
fs.InputError("m: wrong").linse  # wrong
fs.trian  # wrong
