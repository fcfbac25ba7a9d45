"""What a running model and its server really do: probes that are asked, and judged by what came."""
