// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pinnedImage matches an image reference with a digest.
var pinnedImage = regexp.MustCompile(`^[a-z0-9][a-z0-9./_-]*(:[A-Za-z0-9._-]+)?@sha256:[0-9a-f]{64}$`)

// findUnpinned returns the images of a Dockerfile without a digest, except scratch and its own stages.
func findUnpinned(dockerfile string) (images []string) {
	stages := map[string]bool{"scratch": true}
	for line := range strings.Lines(dockerfile) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch {
		case strings.EqualFold(words[0], "FROM"):
			words = words[1:]
			for len(words) > 1 && strings.HasPrefix(words[0], "--") {
				words = words[1:]
			}
			if !stages[words[0]] && !pinnedImage.MatchString(words[0]) {
				images = append(images, words[0])
			}
			if len(words) > 2 {
				stages[words[2]] = true
			}
		default:
			for _, word := range words {
				if from, ok := strings.CutPrefix(word, "--from="); ok && !stages[from] && !pinnedImage.MatchString(from) {
					images = append(images, from)
				}
			}
		}
	}
	return images
}

func TestImagesArePinned(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for file, want := range map[string]string{
		"FROM scratch": "",
		"FROM golang:1.26" + digest + " AS build\nFROM scratch\nCOPY --from=build /a /a": "",
		"FROM golang:1.26 AS build":            "golang:1.26",
		"FROM golang@sha256:12":                "golang@sha256:12",
		"from --platform=linux/amd64 golang":   "golang",
		"FROM ${IMAGE}":                        "${IMAGE}",
		"FROM scratch\nCOPY --from=alpine / /": "alpine",
	} {
		if got := strings.Join(findUnpinned(file), " "); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
	files, err := filepath.Glob("../*Dockerfile*")
	if err != nil || len(files) == 0 {
		t.Fatal("no Dockerfile", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if images := findUnpinned(string(raw)); len(images) > 0 {
			t.Errorf("%s: without a digest: %s", file, images)
		}
	}
}

// A release pins its base image by digest and its actions by commit.
func TestReleaseInputsArePinned(t *testing.T) {
	ko, err := os.ReadFile("../.ko.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bases := regexp.MustCompile(`(?m)^defaultBaseImage: (.*)$`).FindAllStringSubmatch(string(ko), -1)
	if len(bases) != 1 || !pinnedImage.MatchString(bases[0][1]) {
		t.Errorf(".ko.yaml: the image below is %q, want one with a digest", bases)
	}
	workflows, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(workflows) == 0 {
		t.Fatal("no workflow", err)
	}
	for _, file := range workflows {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)uses: *(\S+)`).FindAllStringSubmatch(string(raw), -1) {
			if _, commit, _ := strings.Cut(m[1], "@"); !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(commit) {
				t.Errorf("%s: %s is no commit", file, m[1])
			}
		}
	}
}
