"""Nested mappings are merged key by key."""

from fedsampling.base.nested import merge


class TestMerge:
    def test_mappings_merge_key_by_key_and_lists_are_replaced(self):
        base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
        assert merge(base, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}, "d": 1}

    def test_another_name_replaces_the_whole_mapping(self):
        base = {"model": {"name": "linear", "rho": 1}}
        assert merge(base, {"model": {"name": "tree"}}) == {"model": {"name": "tree"}}
        assert merge(base, {"model": {"name": "linear", "k": 2}})["model"]["rho"] == 1

    def test_null_removes_a_mapping_and_sets_a_value(self):
        base = {"cases": {"one": {}, "two": {}}, "alpha": 0.5}
        merged = merge(base, {"cases": {"one": None}, "alpha": None})
        assert merged == {"cases": {"two": {}}, "alpha": None}

    def test_neither_argument_is_changed(self):
        base, changes = {"a": {"b": 1}}, {"a": {"c": 2}}
        merge(base, changes)["a"]["b"] = 9
        assert (base, changes) == ({"a": {"b": 1}}, {"a": {"c": 2}})
