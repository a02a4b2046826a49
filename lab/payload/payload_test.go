// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The guide's example: 200 MB over 5 kB/s.
const (
	ofPayload = 200_000_000
	speed     = 5_000
)

// A payload without a break takes eleven hours.
const maxDuration = 16 * time.Hour

type fetchMethod struct {
	tableRow string // start of the row in the guide's table
	piece    int    // bytes
	resumes  bool   // an interrupted piece is resumed
	persists bool   // data persists across attempts: a PersistentVolumeClaim
	attempt  time.Duration
	// hours, 0 for never; MB over the link; attempts, which vary by one because of TLS
	hours     float64
	megabytes float64
	attempts  int
}

// A Job gives up half a minute before its attempt ends.
const jobTimeout = 30*time.Minute - 30*time.Second

var fetchMethods = []fetchMethod{
	{tableRow: "one file, from its beginning after each break", piece: ofPayload, persists: true, attempt: 24 * time.Hour, megabytes: 275.5, attempts: 1},
	{tableRow: "pieces of 1 MB, each from its beginning", piece: 1_000_000, persists: true, attempt: 24 * time.Hour, megabytes: 275.5, attempts: 1},
	{tableRow: "pieces of 250 kB, each from its beginning", piece: 250_000, persists: true, attempt: 24 * time.Hour, hours: 13.3, megabytes: 228.3, attempts: 1},
	{tableRow: "one file, by ranges", piece: ofPayload, resumes: true, persists: true, attempt: 24 * time.Hour, hours: 12.0, megabytes: 206.0, attempts: 1},
	{tableRow: "pieces of 1 MB, by ranges", piece: 1_000_000, resumes: true, persists: true, attempt: 24 * time.Hour, hours: 12.0, megabytes: 206.2, attempts: 1},
	{tableRow: "the same, in attempts of 30 minutes", piece: 1_000_000, resumes: true, persists: true, attempt: jobTimeout, hours: 12.2, megabytes: 206.0, attempts: 25},
	{tableRow: "the same, without a volume", piece: 1_000_000, resumes: true, attempt: jobTimeout, megabytes: 271.0, attempts: 32},
}

func (m fetchMethod) tableLine() string {
	after := "never"
	if m.hours > 0 {
		after = fmt.Sprintf("%.1f h", m.hours)
	}
	return fmt.Sprintf("| %s | %s | %.0f MB | %d |", m.tableRow, after, m.megabytes, m.attempts)
}

// Over a link that breaks more often than a piece takes, a payload arrives only if partial data
// counts.
func TestCostOfALargePayload(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of a processor")
	}
	payload := make([]byte, ofPayload)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(payload)
	guide, err := os.ReadFile("../../docs/guide/provisioning.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range fetchMethods {
		t.Run(w.tableRow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := w.measureCost(t, payload)
				t.Logf("arrived %v after %.2f h, %.1f MB over %d connections, %d attempts", got.arrived, got.took.Hours(), got.megabytes, got.connections, got.attempts)
				near := func(got, want float64) bool { return got > 0.99*want && got < 1.01*want }
				if got.arrived != (w.hours > 0) || got.arrived && !near(got.took.Hours(), w.hours) || !near(got.megabytes, w.megabytes) || max(got.attempts, w.attempts) > min(got.attempts, w.attempts)+1 {
					t.Errorf("got %+v, want %+v", got, w)
				}
			})
			if !strings.Contains(string(guide), w.tableLine()+"\n") {
				t.Errorf("the guide says something else than\n%s", w.tableLine())
			}
		})
	}
}

type fetchCost struct {
	arrived     bool
	took        time.Duration
	megabytes   float64
	connections int
	attempts    int
}

// fetcher does what the guide's script does.
type fetcher struct {
	client  *http.Client
	piece   int
	resumes bool
	pieces  map[string][]byte // data on its volume
}

// Attempts are 30 s apart.
func (m fetchMethod) measureCost(t *testing.T, payload []byte) fetchCost {
	l := newLink(speed, 300*time.Millisecond, 2*time.Minute)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		var from, to int
		if _, err := fmt.Sscanf(req.URL.Path, "/%d-%d", &from, &to); err != nil {
			http.NotFound(rw, req)
			return
		}
		http.ServeContent(rw, req, "", time.Time{}, bytes.NewReader(payload[from:to]))
	}))
	_ = server.Listener.Close()
	server.Listener, server.Config.ErrorLog = l, slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer func() { server.Close(); time.Sleep(3 * time.Minute) }() // for data in flight
	wire := server.Client().Transport.(*http.Transport).Clone()
	wire.DialContext, wire.DisableKeepAlives, wire.ForceAttemptHTTP2 = l.dialLink, true, false // like separate curl processes
	f := &fetcher{client: &http.Client{Transport: wire}, piece: m.piece, resumes: m.resumes}
	begun, got := time.Now(), fetchCost{}
	for !got.arrived && time.Since(begun) < maxDuration {
		if got.attempts++; got.attempts == 1 || !m.persists {
			f.pieces = map[string][]byte{}
		}
		ctx, cancel := context.WithTimeout(t.Context(), min(m.attempt, maxDuration-time.Since(begun)))
		got.arrived = f.fetchAll(ctx, payload) == nil
		cancel()
		if !got.arrived {
			time.Sleep(30 * time.Second)
		}
	}
	got.took = time.Since(begun)
	l.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	got.megabytes, got.connections = float64(l.carried)/1e6, l.connections
	return got
}

func (f *fetcher) fetchAll(ctx context.Context, payload []byte) error {
	for from := 0; from < len(payload); from += f.piece {
		name, sum := fmt.Sprintf("/%d-%d", from, from+f.piece), sha256.Sum256(payload[from:from+f.piece])
		for len(f.pieces[name]) < f.piece || sha256.Sum256(f.pieces[name]) != sum {
			if err := f.resumePiece(ctx, name); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				time.Sleep(5 * time.Second)
			}
		}
	}
	return nil
}

func (f *fetcher) resumePiece(ctx context.Context, name string) error {
	if !f.resumes {
		delete(f.pieces, name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com"+name, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-", len(f.pieces[name])))
	res, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusPartialContent {
		return errors.New(res.Status)
	}
	more, err := io.ReadAll(res.Body)
	f.pieces[name] = append(f.pieces[name], more...)
	return err
}
