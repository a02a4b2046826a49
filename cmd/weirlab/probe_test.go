// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/probe"
	"weir.dev/weir/test/patient"
)

// asking simulates the input and output of a user.
type asking struct {
	probeOptions
	emu  *armemu.Emulator
	mu   sync.Mutex
	said strings.Builder
}

func newAsking(t *testing.T, types string) *asking {
	t.Helper()
	a := &asking{emu: patient.Watch(t, armemu.New(armemu.Options{StrictResourceGroups: true}))}
	server := httptest.NewServer(a.emu)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "azure.json")
	text := `{"subscriptionId": "sub-1", "tenantId": "t", "resourceGroup": "rg", "location": "westeurope"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a.probeOptions = probeOptions{
		ConfigFile: file, AzureEndpoint: server.URL, Timeout: time.Minute, In: strings.NewReader(types), Log: slog.New(slog.DiscardHandler),
		Say: func(text string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.said.WriteString(text + "\n")
		},
	}
	return a
}

func (a *asking) saw() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said.String()
}

// Nothing is created before the user confirms.
func TestProbeRequiresConfirmation(t *testing.T) {
	for _, types := range []string{"", "\n", "no\n", "yes please\n"} {
		a := newAsking(t, types)
		_, err := a.probeAzure(t.Context())
		if err == nil || !strings.Contains(err.Error(), "not confirmed, nothing was done") || len(a.emu.Calls()) > 0 {
			t.Errorf("%q: %v, %d calls", types, err, len(a.emu.Calls()))
		}
		if text := a.saw(); !strings.Contains(text, "sub-1") || !strings.Contains(text, "westeurope") || !strings.Contains(text, "(yes/no)") {
			t.Errorf("it says %s", text)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := newAsking(t, "").probeAzure(ctx); err == nil {
		t.Error("stopped while it asks: no error")
	}
}

func TestInvalidProbeFlags(t *testing.T) {
	for wantText, change := range map[string]func(*probeOptions){
		"--config: open /nonexistent":     func(o *probeOptions) { o.ConfigFile = "/nonexistent" },
		"--timeout 0s: want more than 0":  func(o *probeOptions) { o.Timeout = 0 },
		`--location "a/b": want a region`: func(o *probeOptions) { o.Location = "a/b" },
		"--azure-endpoint: ":              func(o *probeOptions) { o.AzureEndpoint = "http://example.org:80" },
	} {
		a := newAsking(t, "yes\n")
		change(&a.probeOptions)
		_, err := a.probeAzure(t.Context())
		if _, usage := errors.AsType[usageError](err); !usage || !strings.HasPrefix(err.Error(), wantText) {
			t.Errorf("got %v, want %s", err, wantText)
		}
	}
}

// A timeout cleans up; for a remaining group the output has the delete command, and --clean requires
// confirmation.
func TestRemainingGroupIsNamed(t *testing.T) {
	a := newAsking(t, "")
	faults := `rules: [{match: {method: DELETE, path: "resourceGroups/*"}, action: {status: 409, code: ScopeLocked, message: "The scope is locked."}}]`
	if err := a.emu.SetFaults(faults); err != nil {
		t.Fatal(err)
	}
	var remaining *probe.OrphanError
	var err error
	for a.Timeout = time.Second; remaining == nil; a.Timeout *= 2 { // until it suffices for creating the group
		a.In = strings.NewReader("yes\n")
		_, err = a.probeAzure(t.Context())
		remaining, _ = errors.AsType[*probe.OrphanError](err)
	}
	for _, want := range []string{
		fmt.Sprintf("stopped: the questions took longer than --timeout %s", a.Timeout/2), "409 ScopeLocked: The scope is locked.",
		"az group delete --subscription sub-1 --name " + remaining.Group, "weirlab probe-azure --clean --subscription sub-1",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if err := a.emu.SetFaults(""); err != nil {
		t.Fatal(err)
	}
	a.In = strings.NewReader("no\n")
	if err := a.cleanProbes(t.Context()); err == nil || !strings.Contains(a.saw(), "Delete these resource groups (1), with all they hold? (yes/no)") {
		t.Errorf("%v: %s", err, a.saw())
	}
	if !strings.Contains(string(a.emu.Snapshot()), remaining.Group) {
		t.Fatal("it is deleted without confirmation")
	}
	a.SkipConfirmation = true
	for _, wantText := range []string{"deleted " + remaining.Group, "has no resource group that a probe has left behind"} {
		if err := a.cleanProbes(t.Context()); err != nil || !strings.Contains(a.saw(), wantText) {
			t.Errorf("%v: %s", err, a.saw())
		}
	}
	if strings.Contains(string(a.emu.Snapshot()), remaining.Group) {
		t.Error("it is still there")
	}
}

// Stopping while the group is being created prints what may remain and how to delete it.
func TestCleanupHint(t *testing.T) {
	for _, row := range []struct {
		left     probe.OrphanError
		wantText string
	}{
		{probe.OrphanError{Group: "weir-probe-a", Uncertain: true, Err: errors.New("no answer")}, "resource group weir-probe-a may come to be there yet: no answer\nIt would be empty and cost nothing. Delete it: "},
		{probe.OrphanError{Group: "weir-probe-a", Err: errors.New("409")}, "resource group weir-probe-a could not be deleted: 409\nIt may still cost money. Delete it: "},
	} {
		want := row.wantText + "az group delete --subscription sub-1 --name weir-probe-a\nor: weirlab probe-azure --clean --subscription sub-1"
		if got := addCleanupHint(&row.left, "sub-1").Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
