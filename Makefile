# Everything a newcomer needs: `make demo` and `make test` set up .venv by themselves.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: install demo test fuzz lint format clean

install: $(INSTALLED)

$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

demo: install
	$(BIN)/skeleton-cgl run experiments/quickstart.yaml --store demo/quickstart.db --workers 2
	$(BIN)/skeleton-cgl table demo/quickstart.db
	$(BIN)/python figures/order_scatter.py demo/quickstart.db --out demo/scatter.png
	@echo "AA against AF of every order: demo/scatter.png"

test: install lint
	$(BIN)/python -m pytest -n 2

# Many times the cases of `make test`, others every time: SKELETON_CGL_FUZZ=100 make fuzz for still more.
fuzz: install
	SKELETON_CGL_FUZZ=$${SKELETON_CGL_FUZZ:-20} SKELETON_CGL_FUZZ_SEED=$${SKELETON_CGL_FUZZ_SEED:-$$(date +%s)} \
		$(BIN)/python -m pytest -n 2 tests/fuzz

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo build dist *.egg-info
