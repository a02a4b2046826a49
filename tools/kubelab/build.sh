#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds bin/kubelab and the links bin/etcd, bin/kube-apiserver and bin/kubectl. Does nothing if the
# hash of the sources matches the one saved at the last build; timestamps are useless in a fresh clone.
# "build.sh test" runs kubelab's tests with the same flags, to reuse the build cache. "build.sh oldest" builds the
# oldest supported version of Kubernetes into bin/oldest, from oldest.mod.
set -eu
cd "$(dirname "$0")"

# Omitting debug information and disabling the compiler's GC below 3 GiB saves a quarter of the build time.
# Packages that only Kubernetes uses are compiled without inlining, which saves a third; packages shared
# with Weir are compiled once for both.
export GOFLAGS='' GOWORK=off CGO_ENABLED=0 GOGC=off GOMEMLIMIT=3GiB
lean() {
	command=$1
	shift
	for packages in k8s.io/kubernetes k8s.io/kubectl k8s.io/kube-aggregator k8s.io/apiextensions-apiserver \
		k8s.io/apiserver/pkg/admission k8s.io/apiserver/pkg/cel k8s.io/apiserver/plugin \
		k8s.io/client-go/kubernetes/fake k8s.io/client-go/kubernetes/typed/.../fake \
		k8s.io/cloud-provider k8s.io/component-base k8s.io/component-helpers k8s.io/controller-manager \
		k8s.io/dynamic-resource-allocation sigs.k8s.io/kustomize github.com/google/cel-go github.com/antlr4-go; do
		set -- "-gcflags=$packages/...=-dwarf=false -l" "$@"
	done
	go "$command" -trimpath -buildvcs=false -gcflags=all=-dwarf=false "$@"
}
if [ "${1:-}" = test ]; then
	lean test .
	exit
fi
bin=../../bin
mod=go
if [ "${1:-}" = oldest ]; then
	bin=../../bin/oldest
	mod=oldest
	export GOFLAGS='-modfile=oldest.mod -tags=oldest'
fi
stamp=$bin/.kubelab.sha256

# The version to report is that of the Kubernetes module.
version=$(sed -n 's/^[[:space:]]*k8s\.io\/kubernetes \(v[0-9.]*\)$/\1/p' $mod.mod)
if [ -z "$version" ]; then
	echo "kubelab: $mod.mod requires no k8s.io/kubernetes vX.Y.Z; nothing to build" >&2
	exit 1
fi

sha256() {
	if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}
sources() {
	go version
	for f in *.go $mod.mod $mod.sum build.sh; do
		case $f in *_test.go) continue ;; esac
		echo "$f"
		cat "$f"
	done
}
hash=$(sources | sha256 | cut -d ' ' -f 1)

link() {
	for name in etcd kube-apiserver kubectl; do
		ln -sf kubelab "$bin/$name"
	done
}

if [ -x "$bin/kubelab" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ]; then
	link
	exit 0
fi

mkdir -p "$bin"
new=$bin/.kubelab.$$
trap 'rm -f "$new" "$new.failed"' EXIT
trap 'exit 130' INT TERM

minor=${version#*.}
set -- \
	-X "k8s.io/component-base/version.gitVersion=$version" \
	-X "k8s.io/component-base/version.gitMajor=1" \
	-X "k8s.io/component-base/version.gitMinor=${minor%%.*}" \
	-X "k8s.io/client-go/pkg/version.gitVersion=$version"
packages=$(go list -deps . | wc -l)
echo "kubelab: building etcd, kube-apiserver and controllers from source, once: $((packages)) packages, about 4 minutes on 2 cores"

# Count the compiled packages in go's output; print everything else.
{
	lean build -v -ldflags="-s -w $*" -o "$new" . 2>&1 || touch "$new.failed"
} | awk -v all="$((packages))" '
	/^[A-Za-z0-9][^ :]*$/ { if (++n % 300 == 0) { print "kubelab: " n " of " all " packages are compiled"; fflush() } next }
	{ print > "/dev/stderr" }'
[ ! -e "$new.failed" ]
echo "kubelab: all packages are compiled and linked"
rm -f "$stamp" # never keep the stamp of another binary
mv -f "$new" "$bin/kubelab"
link
echo "$hash" >"$stamp.$$"
mv -f "$stamp.$$" "$stamp"
