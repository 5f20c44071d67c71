#!/bin/sh
# Makes a Python for AArch64 that qemu runs: sh tests/support/aarch64.sh FOLDER
#
# FOLDER gets Debian's Python and C library (apt-get, 60 MB), the dependencies of this project
# (pip, 700 MB), and `python`, which runs them in this checkout.  Nothing of it is installed.
# Without qemu-aarch64 or apt-get there is no FOLDER/python, and a line that says so.
set -eu

folder=$1
if [ -x "$folder/python" ]; then exit 0; fi
for program in qemu-aarch64 apt-get dpkg-deb python3; do
    if ! command -v "$program" > /dev/null; then
        echo "skipped: there is no $program (Debian: apt-get install qemu-user)"
        exit 0
    fi
done

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
mkdir -p "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial"
: > "$folder/apt/status"
cat > "$folder/apt.conf" << END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$folder/apt/state";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt/cache";
END
APT_CONFIG=$folder/apt.conf
export APT_CONFIG
apt-get -qq update
apt-get -qq --yes --no-install-recommends --download-only install libstdc++6 python3
for package in "$folder"/apt/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$folder/root"
done
unset APT_CONFIG

version=$(basename "$folder"/root/usr/lib/python3.*)
platforms=$(for glibc in 17 24 26 27 28 31 34; do echo "--platform manylinux_2_${glibc}_aarch64"; done)
# No test of kernels draws, proves, serves or runs a notebook; z3 and cvc5 need a newer C library.
needed=$(python3 -c "
import tomllib
project = tomllib.load(open('pyproject.toml', 'rb'))
others = ('cvc5', 'grpcio', 'igraph', 'ipykernel', 'nbclient', 'z3-')
tested = (n for n in project['dependency-groups']['test'] if not n.startswith(others))
print(*project['project']['dependencies'], *tested, sep='\n')
")
# shellcheck disable=SC2086 # options, one for each platform
echo "$needed" | python3 -m pip install --quiet --target "$folder/site" $platforms \
    --platform manylinux2014_aarch64 --implementation cp --python-version "${version#python}" \
    --only-binary=:all: --constraint constraints.txt --requirement /dev/stdin

# `python` is a script, so that processes which a test starts run emulated, too.  The processor is
# named: what qemu takes for the largest one sets float exceptions that no processor sets.
cat > "$folder/python.part" << END
#!/bin/sh
PYTHONHOME=$folder/root/usr PYTHONPATH=$folder/site:$(pwd) exec \\
    qemu-aarch64 -cpu cortex-a72 -0 "$folder/python" -L "$folder/root" "$folder/root/usr/bin/$version" "\$@"
END
chmod +x "$folder/python.part"
mv "$folder/python.part" "$folder/python"
