// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
)

// writeArchive writes an archive of a build and the license, and returns its SHA-256 digest. The output is
// reproducible.
func writeArchive(archive, build, program, license string) (digest string, err error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	tape := tar.NewWriter(zip)
	for _, f := range []struct {
		from, as string
		mode     int64
	}{{build, program, 0o755}, {license, "LICENSE", 0o644}} {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return "", err
		}
		if err := tape.WriteHeader(&tar.Header{Name: f.as, Mode: f.mode, Size: int64(len(content)), Format: tar.FormatUSTAR}); err != nil {
			return "", err
		}
		if _, err := tape.Write(content); err != nil {
			return "", err
		}
	}
	if err := tape.Close(); err != nil {
		return "", err
	}
	if err := zip.Close(); err != nil {
		return "", err
	}
	sum := sha256.Sum256(packed.Bytes())
	return hex.EncodeToString(sum[:]), os.WriteFile(archive, packed.Bytes(), 0o644) //nolint:gosec // a public file
}
