// SPDX-License-Identifier: Apache-2.0

// Command plugin packages builds of weir as a kubectl plugin and writes the krew manifest
// (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	dir := flag.String("dir", "bin/release", "where the builds are, kubectl-weir-OS-ARCH, and where archives and manifest go")
	version := flag.String("version", "", "the release, v1.2.3")
	from := flag.String("from", "", "the URL below which the release has its archives")
	flag.Parse()
	if err := run(*dir, *version, *from, "LICENSE"); err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}

var versionPattern = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func run(dir, version, from, license string) error {
	switch {
	case !versionPattern.MatchString(version):
		return fmt.Errorf("-version %q: want v1.2.3, as krew does", version)
	case !strings.HasPrefix(from, "https://"):
		return fmt.Errorf("-from %q: want https://…", from)
	}
	builds, err := filepath.Glob(filepath.Join(dir, "kubectl-weir-*-*"))
	if err != nil {
		return err
	}
	m := newManifest(version)
	for _, build := range builds {
		os, arch, ok := parsePlatform(filepath.Base(build))
		if !ok {
			continue
		}
		archive := filepath.Join(dir, fmt.Sprintf("kubectl-weir-%s-%s.tar.gz", os, arch))
		digest, err := writeArchive(archive, build, programName(os), license)
		if err != nil {
			return err
		}
		m.Spec.Platforms = append(m.Spec.Platforms, platform{
			Selector: selector{MatchLabels: map[string]string{"os": os, "arch": arch}},
			URI:      strings.TrimSuffix(from, "/") + "/" + filepath.Base(archive),
			SHA256:   digest, Bin: programName(os),
		})
	}
	if len(m.Spec.Platforms) == 0 {
		return fmt.Errorf("%s has no build named kubectl-weir-OS-ARCH: run make plugin", dir)
	}
	text, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "weir.yaml"), text, 0o644) //nolint:gosec // a public file
}

func parsePlatform(name string) (os, arch string, ok bool) {
	os, arch, ok = strings.Cut(strings.TrimPrefix(strings.TrimSuffix(name, ".exe"), "kubectl-weir-"), "-")
	return os, arch, ok && !strings.ContainsAny(arch, ".-")
}

// programName returns the file name that kubectl expects.
func programName(os string) string {
	if os == "windows" {
		return "kubectl-weir.exe"
	}
	return "kubectl-weir"
}
