// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"weir.dev/weir/api/v1alpha1"
)

// With the setting off a start says what was left Down: on each pool, and in one line of the
// log, both of bounded length.
func TestWhatWasLeftDownIsSaidAtStart(t *testing.T) {
	var log bytes.Buffer
	d := stored(t, bp("a", 0))
	d.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	d.tellLeftDown(t.Context())
	if log.Len() > 0 || len(d.events.waiting) > 0 {
		t.Errorf("nothing was left Down: %s", &log)
	}
	down := []v1alpha1.DownAddress{{Address: "10.0.0.1", Node: "n1"}, {Address: "10.0.0.2"}}
	if err := d.snap.pools.Update(bp("a", 0, func(p *v1alpha1.BackendPool) { p.Status.Down = down })); err != nil {
		t.Fatal(err)
	}
	d.tellLeftDown(t.Context())
	e, _ := d.events.next()
	if want := "enableNodeAdminState is false, and Weir has left Down: n1 (10.0.0.1), 10.0.0.2. No new flows"; e.Event == nil ||
		e.Reason != EventLeftDown || !strings.HasPrefix(e.Message, want) || e.InvolvedObject.Kind != "BackendPool" {
		t.Errorf("event %+v", e.Event)
	}
	if text := log.String(); !strings.Contains(text, "addresses=2 backendPools=1 among=\"[shop/a: n1 (10.0.0.1), 10.0.0.2]\"") {
		t.Error(text)
	}

	log.Reset()
	for n := range 300 {
		p := bp(fmt.Sprintf("p%d", n), 0)
		for i := range 300 {
			p.Status.Down = append(p.Status.Down, v1alpha1.DownAddress{Address: ipOf(i).String(), Node: strings.Repeat("n", 253)})
		}
		if err := d.snap.pools.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	d.tellLeftDown(t.Context())
	if text := log.String(); strings.Count(text, "\n") != 1 || len(text) > 20_000 || !strings.Contains(text, "addresses=90002 backendPools=301") {
		t.Errorf("%d lines, %d bytes: %.300s", strings.Count(text, "\n"), len(text), text)
	}
	d.events.next()
	if e, _ := d.events.next(); len(e.Message) > maxMessage || !strings.Contains(e.Message, "and 288 more. No new flows") {
		t.Errorf("event %q", e.Message)
	}
}
