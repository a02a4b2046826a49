// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// cloud is an emulated Azure with resources.
type cloud struct {
	*armemu.Emulator
	url string
}

func newCloud(t *testing.T, snapshot []byte) *cloud {
	t.Helper()
	return newCloudWith(t, armemu.Options{Seed: 1}, snapshot)
}

func newCloudWith(t *testing.T, opts armemu.Options, snapshot []byte) *cloud {
	t.Helper()
	emu := patient.Watch(t, armemu.New(opts))
	if snapshot != nil {
		if err := emu.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	return &cloud{emu, server.URL}
}

// plan plans for the objects in YAML and fails the test on any write.
func (c *cloud) plan(t *testing.T, azure, objects string, change ...func(*PlanOptions)) (dryrun.Report, error) {
	t.Helper()
	o := PlanOptions{Files: []string{"-"}, Stdin: strings.NewReader(objects)}
	o.ConfigFile, o.ClusterName, o.AzureEndpoint, o.Log = azure, "kubernetes", c.url, slog.New(slog.DiscardHandler)
	o.LoadBalancerClass = LoadBalancerClass
	for _, ch := range change {
		ch(&o)
	}
	before := string(c.Snapshot())
	p, err := Plan(t.Context(), o)
	if s := c.Stats(); s.Writes+s.Deletes > 0 || string(c.Snapshot()) != before {
		t.Errorf("the plan wrote to Azure: %+v", s)
	}
	return p, err
}

// resource is an element of a snapshot.
type resource struct {
	ID   string         `json:"id"`
	Body map[string]any `json:"body"`
}

// tampered edits the resources of a snapshot with this ID suffix; edit returns false to remove one.
func tampered(t *testing.T, snapshot []byte, suffix string, edit func(body map[string]any) (keep bool)) []byte {
	t.Helper()
	var resources, next []resource
	if err := json.Unmarshal(snapshot, &resources); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range resources {
		if strings.HasSuffix(r.ID, suffix) {
			found = true
			if !edit(r.Body) {
				continue
			}
		}
		next = append(next, r)
	}
	if !found {
		t.Fatalf("no resource ends in %q", suffix)
	}
	raw, err := json.Marshal(next)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// at navigates JSON: a string is a key, or the name of a list item.
func at(t *testing.T, in any, path ...string) map[string]any {
	t.Helper()
	for _, step := range path {
		switch current := in.(type) {
		case map[string]any:
			in = current[step]
		case []any:
			in = nil
			for _, item := range current {
				if m, ok := item.(map[string]any); ok && m["name"] == step {
					in = m
				}
			}
		}
	}
	m, ok := in.(map[string]any)
	if !ok {
		t.Fatalf("there is nothing at %q", path)
	}
	return m
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A plan that times out is an error, even if some Services were planned.
func TestInterruptedPlan(t *testing.T) {
	c := newCloud(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 30 { // select picks ready cases at random
		o := PlanOptions{Files: []string{"testdata/plan/shop.yaml"}}
		o.ConfigFile, o.ClusterName, o.AzureEndpoint, o.LoadBalancerClass, o.Log = "testdata/plan/azure.json", "kubernetes", c.url, LoadBalancerClass, slog.New(slog.DiscardHandler)
		if p, err := Plan(ctx, o); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v:\n%s", err, p.FormatText(false))
		}
	}
}
