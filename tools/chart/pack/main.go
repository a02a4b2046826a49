// SPDX-License-Identifier: Apache-2.0

// Command pack packages charts/weir for a release: its version, and its images by digest.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// release is a version of Weir and its images.
type release struct {
	Version     string // v1.2.3
	Repository  string // of the controller's image; the provisioner's ends with -provisioner
	Controller  string // digest, sha256:…
	Provisioner string // digest, sha256:…
}

func main() {
	charts := flag.String("chart", "charts/weir", "the folder of the chart")
	dir := flag.String("dir", "bin/release", "the folder of image-refs-weir and image-refs-weir-provisioner, and of the archive")
	var r release
	flag.StringVar(&r.Version, "version", "", "the release, v1.2.3")
	flag.StringVar(&r.Repository, "image", "", "the repository of the controller's image, registry/weir")
	flag.Parse()
	if err := run(*charts, *dir, r); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(charts, dir string, r release) error {
	var err error
	if r.Controller, err = readDigest(filepath.Join(dir, "image-refs-weir")); err != nil {
		return err
	}
	if r.Provisioner, err = readDigest(filepath.Join(dir, "image-refs-weir-provisioner")); err != nil {
		return err
	}
	archive, err := packChart(charts, dir, r)
	if err != nil {
		return err
	}
	fmt.Println(archive)
	return nil
}

var (
	versionPattern    = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	repositoryPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]*$`)
	digestPattern     = regexp.MustCompile(`@(sha256:[0-9a-f]{64})\s`)
)

// readDigest returns the digest of the first image reference in a file that ko or crane wrote: that of the
// image of all platforms.
func readDigest(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%w: run make image first", err)
	}
	m := digestPattern.FindStringSubmatch(string(text) + "\n")
	if m == nil {
		return "", fmt.Errorf("%s has no image reference with a digest: run make image again", file)
	}
	return m[1], nil
}

// packChart writes weir-1.2.3.tgz to dir, and returns its path.
func packChart(charts, dir string, r release) (string, error) {
	switch {
	case !versionPattern.MatchString(r.Version):
		return "", fmt.Errorf("-version %q: want v1.2.3", r.Version)
	case !repositoryPattern.MatchString(r.Repository):
		return "", fmt.Errorf("-image %q: want registry/weir", r.Repository)
	}
	c, err := loader.Load(charts)
	if err != nil {
		return "", err
	}
	c.Metadata.Version, c.Metadata.AppVersion = strings.TrimPrefix(r.Version, "v"), r.Version
	for _, f := range c.Raw {
		if f.Name == chartutil.ValuesfileName {
			f.Data, err = setImages(f.Data, r)
		}
		if err != nil {
			return "", err
		}
	}
	return chartutil.Save(c, dir)
}

// setImages sets the images in values.yaml, and leaves its comments.
func setImages(values []byte, r release) ([]byte, error) {
	text := string(values)
	for _, edit := range []struct{ old, new string }{
		{
			"image:\n  repository: weir\n  tag: dev\n  digest: \"\"\n",
			fmt.Sprintf("image:\n  repository: %s\n  tag: %s\n  digest: %s\n", r.Repository, r.Version, r.Controller),
		},
		{
			"  repository: weir-provisioner\n  digest: \"\"\n",
			fmt.Sprintf("  repository: %s-provisioner\n  digest: %s\n", r.Repository, r.Provisioner),
		},
	} {
		if strings.Count(text, edit.old) != 1 {
			return nil, fmt.Errorf("values.yaml does not have these lines once:\n%s", edit.old)
		}
		text = strings.Replace(text, edit.old, edit.new, 1)
	}
	return []byte(text), nil
}
