// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/probe"
	"weir.dev/weir/test/patient"
)

// cloud is an emulated Azure with the progress lines of a probe.
type cloud struct {
	t    testing.TB
	emu  *armemu.Emulator
	mu   sync.Mutex
	said []string
	// onLine is called for each line; may be nil.
	onLine func(line string)
}

func newCloud(t testing.TB, opts armemu.Options) *cloud {
	t.Helper()
	if opts.LatencyScale == 0 {
		opts.LatencyScale = 1
	}
	opts.StrictResourceGroups = true
	return &cloud{t: t, emu: patient.Watch(t, armemu.New(opts))}
}

// client is a separate process that uses a transport.
func (c *cloud) client(transport azure.Transport) *azure.RawClient {
	c.t.Helper()
	endpoint, credential, err := azure.LocalEndpoint("http://127.0.0.1:1")
	if err != nil {
		c.t.Fatal(err)
	}
	if transport == nil {
		transport = c.emu.Transport()
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: transport, UserAgent: "weir/test"})
	if err != nil {
		c.t.Fatal(err)
	}
	raw, err := client.NewRawClient()
	if err != nil {
		c.t.Fatal(err)
	}
	return raw
}

func (c *cloud) settings() probe.Settings {
	c.t.Helper()
	s, err := probe.Settings{
		Subscription: "sub-canary-1", Location: "West Europe", Key: "ssh-rsa AAAA", Suffix: "abc123",
		Version: "test", Cloud: behavior.EmulatorCloud, Secrets: []string{"tenant-canary-1"},
	}.Normalize()
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c *cloud) say(line string) {
	c.mu.Lock()
	c.said = append(c.said, line)
	c.mu.Unlock()
	if c.onLine != nil {
		c.onLine(line)
	}
}

func (c *cloud) run(ctx context.Context, transport azure.Transport) (behavior.Report, error) {
	return probe.Probe{Azure: c.client(transport), Settings: c.settings(), Log: c.say}.Run(ctx)
}

// remainingResources returns the remaining resources and groups.
func (c *cloud) remainingResources() string {
	c.t.Helper()
	if trimmed := strings.TrimSpace(string(c.emu.Snapshot())); trimmed != "[]" {
		return trimmed
	}
	return ""
}

// transport is a function that implements azure.Transport.
type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, armemu.Options{Seed: 1})
		began := time.Now()
		report, err := c.run(t.Context(), nil)
		t.Log(strings.Join(c.said, "\n"))
		t.Log(probe.FormatReport(report))
		t.Log(time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		if remaining := c.remainingResources(); remaining != "" {
			t.Error(remaining)
		}
	})
}
