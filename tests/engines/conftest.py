"""Assertions of the contract tell what they compare."""

import pytest

pytest.register_assert_rewrite("engines.contract")
