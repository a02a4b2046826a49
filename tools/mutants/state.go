// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// state stores results in a file, one JSON object per line, so that an interrupted run can resume.
// A result is valid while the hash of its inputs is unchanged.
type state struct {
	path    string
	tree    string
	results map[string]result
}

type record struct {
	Tree, Key string
	Verdict   result
}

func openState(path, tree string) (*state, error) {
	s := &state{path: path, tree: tree, results: map[string]result{}}
	f, err := os.Open(path) //nolint:gosec // named on the command line
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var l record
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Tree == tree { // the last line may be truncated
			s.results[l.Key] = l.Verdict
		}
	}
	return s, nil
}

func (s *state) save(m mutant, v result) error {
	s.results[m.stateKey()] = v
	raw, err := json.Marshal(record{s.tree, m.stateKey(), v})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Close())
}

func (m mutant) stateKey() string { return fmt.Sprintf("%s:%d-%d %s", m.File, m.From, m.To, m.New) }

// hashInputs returns a digest of all files in folders, recursively, and the number of seeds.
func hashInputs(root string, folders []string, seeds int) (string, error) {
	h := sha256.New()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(name) //nolint:gosec // a file of the tree
			fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(text))
			return err
		})
		if err != nil {
			return "", err
		}
	}
	fmt.Fprintf(h, "%d seeds\n", seeds)
	return fmt.Sprintf("%x", h.Sum(nil))[:16], nil
}
