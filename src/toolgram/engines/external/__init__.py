"""Masks for engines that are not ours."""
