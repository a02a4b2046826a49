// SPDX-License-Identifier: Apache-2.0

package patient_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

func TestKeptReportsABodyThatBreaksTheSchema(t *testing.T) {
	emu := armemu.New(armemu.Options{})
	put := func(properties string, want int) {
		t.Helper()
		const id = "http://a.test/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/x?api-version=2025-05-01"
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, id, strings.NewReader(`{"location":"eastus","properties":{`+properties+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		resp, err := emu.Transport().Do(req)
		if err != nil || resp.StatusCode != want {
			t.Fatal(resp, err)
		}
	}
	if put(``, http.StatusCreated); patient.CheckRequests(emu) != nil {
		t.Error(patient.CheckRequests(emu))
	}
	put(`"mode":"Advanced"`, http.StatusBadRequest)
	if err := patient.CheckRequests(emu); err == nil || !strings.Contains(err.Error(), `properties.mode: newer ("2025-09-01")`) {
		t.Error(err)
	}
}

// Every package that starts an emulator checks for early calls. The emulator's own tests send them
// on purpose.
func TestEveryEmulatorIsWatched(t *testing.T) {
	starts, watches := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		dir := filepath.ToSlash(filepath.Dir(path))
		test := strings.HasSuffix(path, "_test.go") || dir == "../../lab/scenario"
		starts[dir] = starts[dir] || test && strings.Contains(string(text), "armemu.New(")
		watches[dir] = watches[dir] || strings.Contains(string(text), "patient.Watch(") ||
			strings.Contains(string(text), "patient.CheckRequests(") || strings.Contains(string(text), ".EarlyCalls()")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for dir := range starts {
		if !starts[dir] || dir == "." || dir == "../../lab/armemu" {
			continue
		}
		if found++; !watches[dir] {
			t.Errorf("%s starts an emulator and does not check for requests before a Retry-After: use patient.Watch", dir)
		}
	}
	if found < 8 {
		t.Errorf("found %d packages alone that start an emulator", found)
	}
}
