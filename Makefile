# Everything a newcomer needs: `make demo` and `make test` set up .venv by themselves.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: install demo test lint format clean

install: $(INSTALLED)

$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

demo: install
	$(BIN)/skeleton-cgl prepare synthetic --out demo/synthetic.h5
	$(BIN)/skeleton-cgl show demo/synthetic.h5 --out demo/synthetic.png

test: install lint
	$(BIN)/python -m pytest -n 2

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo build dist *.egg-info
