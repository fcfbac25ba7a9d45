"""Assertions of the contract tell what they compare; there is no MLX for Windows."""

import sys

import pytest

pytest.register_assert_rewrite("engines.contract")

collect_ignore = ["test_mlx.py"] if sys.platform == "win32" else []
