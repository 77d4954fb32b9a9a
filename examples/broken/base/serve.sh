#!/bin/bash
# Starts the majority model's server on port 8000.
set -euo pipefail
cd "$(dirname "$0")"
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec python3 code/server.py --weights weights --port 8000
