// SPDX-License-Identifier: Apache-2.0

package services

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/loadbalancer"
)

// fakeOrphans is a fake Azure: each search returns the next list; the last one repeats.
type fakeOrphans struct {
	Balancers
	searches [][]loadbalancer.Orphan
	// deletions counts calls of CleanUp.
	deletions atomic.Int64
}

func (f *fakeOrphans) ListOrphans(context.Context) ([]loadbalancer.Orphan, error) {
	current := f.searches[0]
	if len(f.searches) > 1 {
		f.searches = f.searches[1:]
	}
	if current == nil {
		return nil, errors.New("no answer")
	}
	return current, nil
}

func (f *fakeOrphans) CleanUp(context.Context) (loadbalancer.CleanupResult, error) {
	f.deletions.Add(1)
	return loadbalancer.CleanupResult{}, nil
}

// Each leftover is logged once and counted while it exists; a failed search changes nothing.
func TestOrphansAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ip, rule := loadbalancer.Orphan{Description: "public IP x", Service: "shop/x"}, loadbalancer.Orphan{Description: "rule y"}
		var log bytes.Buffer
		c := &Reconciler{cfg: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, options: Options{ResyncPeriod: 10 * time.Minute}}
		looks := &fakeOrphans{searches: [][]loadbalancer.Orphan{{ip}, nil, {ip, rule}, {rule}, {}, {rule}}}
		c.deployer = looks
		ctx, cancel := context.WithCancel(t.Context())
		go c.RunOrphanSearch(ctx)
		for at, want := range []struct{ lines, count int }{{0, 0}, {1, 1}, {1, 1}, {2, 2}, {2, 1}, {2, 0}, {2, 0}} {
			synctest.Wait()
			if got := strings.Count(log.String(), "level=WARN"); got != want.lines || c.CountOrphans() != want.count {
				t.Errorf("look %d: %d lines, %d counted; want %+v", at, got, c.CountOrphans(), want)
			}
			time.Sleep(10 * time.Minute)
		}
		synctest.Wait()
		if n := looks.deletions.Load(); n != 7 {
			t.Errorf("%d deletions, want one at each look", n)
		}
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if n := c.CountOrphans(); n != 0 || len(looks.searches) != 1 {
			t.Errorf("%d counted, %d looks are left: where none are, they are looked for once a day", n, len(looks.searches))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := c.CountOrphans(); n != 1 {
			t.Errorf("%d counted a day later", n)
		}
		if n, want := looks.deletions.Load(), int64(7+24*6); n != want {
			t.Errorf("%d deletions, want %d: they do not wait for the looks", n, want)
		}
		cancel()
		if output := log.String(); !strings.Contains(output, "public IP x") || !strings.Contains(output, "madeFor=shop/x") {
			t.Errorf("said %s", output)
		}
	})
}
