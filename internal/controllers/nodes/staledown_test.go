// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/humanize"
)

// With admin states disabled, a start reports Down addresses per pool and in one log line, both of bounded
// length.
func TestStaleDownMembersAreReportedAtStart(t *testing.T) {
	var log bytes.Buffer
	snap, reported := &cache.Snapshot{}, &eventTexts{}
	snap.InMemory()
	pool := func(name string, down ...v1alpha1.DownAddress) *v1alpha1.BackendPool {
		return &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: v1alpha1.BackendPoolStatus{Down: down}}
	}
	tell := func() {
		*reported = nil
		ReportStaleDown(t.Context(), snap, reported, slog.New(slog.NewTextHandler(&log, nil)))
	}
	if err := snap.Add(pool("a")); err != nil {
		t.Fatal(err)
	}
	if tell(); log.Len() > 0 || len(*reported) > 0 {
		t.Errorf("nothing was left Down: %s", &log)
	}
	down := []v1alpha1.DownAddress{{Address: "10.0.0.1", Node: "n1"}, {Address: "10.0.0.2"}}
	if err := snap.Add(pool("a", down...)); err != nil {
		t.Fatal(err)
	}
	tell()
	if want := "BackendPool a AdminStateLeftDown: enableNodeAdminState is false, and Weir has left Down: n1 (10.0.0.1), 10.0.0.2. They receive no new flows"; !strings.HasPrefix((*reported)[0], want) {
		t.Errorf("event %q", (*reported)[0])
	}
	if text := log.String(); !strings.Contains(text, "addresses=2 backendPools=1 among=\"[shop/a: n1 (10.0.0.1), 10.0.0.2]\"") {
		t.Error(text)
	}

	log.Reset()
	for n := range 300 {
		p := pool(fmt.Sprintf("p%d", n))
		for i := range 300 {
			p.Status.Down = append(p.Status.Down, v1alpha1.DownAddress{Address: netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i % 250)}).String(), Node: strings.Repeat("n", 253)})
		}
		if err := snap.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	tell()
	if text := log.String(); strings.Count(text, "\n") != 1 || len(text) > 20_000 || !strings.Contains(text, "addresses=90002 backendPools=301") {
		t.Errorf("%d lines, %d bytes: %.300s", strings.Count(text, "\n"), len(text), text)
	}
	prefix := "BackendPool p0 AdminStateLeftDown: "
	if output := strings.TrimPrefix((*reported)[1], prefix); len(output) > humanize.MaxMessage || !strings.Contains(output, "and 288 more. They receive no new flows") {
		t.Errorf("event %q", output)
	}
}

type eventTexts []string

func (e *eventTexts) Add(about runtime.Object, _, reason, message string) {
	of := about.(interface{ GetName() string })
	*e = append(*e, fmt.Sprintf("%s %s %s: %s", reflect.TypeOf(about).Elem().Name(), of.GetName(), reason, message))
}
