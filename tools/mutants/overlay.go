// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// writeOverlay writes a changed file, and the list that puts it into the place of the one in
// the tree; without a change the list is empty.
func writeOverlay(dir, root string, m *mutant) (list string, err error) {
	replace := map[string]string{}
	if m != nil {
		whole := filepath.Join(root, m.File)
		text, err := os.ReadFile(whole) //nolint:gosec // a file of the tree
		if err != nil {
			return "", err
		}
		replace[whole] = filepath.Join(dir, "changed.go")
		if err := os.WriteFile(replace[whole], m.applied(text), 0o600); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, raw, 0o600)
}
