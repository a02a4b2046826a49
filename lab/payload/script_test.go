// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

type pieceServer struct {
	pieces map[string][]byte

	mu           sync.Mutex
	random       *rand.Rand
	corruptPiece string // a piece served once with wrong content
	sent         int
	asked        int
	onAsk        func(asked int)
}

func newPieceServer(pieces, bytesEach int) *pieceServer {
	s := &pieceServer{pieces: map[string][]byte{}, random: rand.New(rand.NewPCG(1, 1)), onAsk: func(int) {}} //nolint:gosec // a seed
	sums := ""
	for n := range pieces {
		content, name := make([]byte, bytesEach), fmt.Sprintf("piece-%03d", n)
		_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(content)
		s.pieces[name], sums = content, sums+fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
	}
	s.pieces["SHA256SUMS"] = []byte(sums)
	return s
}

// ServeHTTP implements http.Handler. Three of four responses break off.
func (s *pieceServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(req.URL.Path, "/")
	s.mu.Lock()
	content, limit := s.pieces[name], 1<<30
	if s.corruptPiece == name {
		content, s.corruptPiece = bytes.Repeat([]byte("wrong"), len(content)/5), ""
	} else if name != "SHA256SUMS" {
		if s.asked++; s.random.IntN(4) > 0 {
			limit = s.random.IntN(len(content))
		}
	}
	s.onAsk(s.asked)
	s.mu.Unlock()
	http.ServeContent(&truncatedWriter{w, s, limit}, req, "", time.Time{}, bytes.NewReader(content))
}

type truncatedWriter struct {
	http.ResponseWriter

	of   *pieceServer
	left int
}

// Write implements io.Writer.
func (t *truncatedWriter) Write(p []byte) (int, error) {
	n, err := t.ResponseWriter.Write(p[:min(len(p), t.left)])
	t.of.mu.Lock()
	t.of.sent += n
	t.of.mu.Unlock()
	if t.left -= n; t.left == 0 {
		if f, ok := t.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func guideScript(t *testing.T) string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/guide/provisioning.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(guide), "command: [sh, -c]\n        args:\n          - |\n")
	text, _, _ := strings.Cut(after, "```")
	if text == "" {
		t.Fatal("the guide has no script")
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n            ", "\n"), "cd /payload", `cd "$AT"`)
}

// The script is killed once and one piece is wrong; nothing is fetched twice.
func TestScriptOfTheGuide(t *testing.T) {
	for _, needed := range []string{"sh", "curl", "sha256sum"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Fatalf("the script of the guide needs %s: %v", needed, err)
		}
	}
	const pieces, each = 8, 200_000
	s := newPieceServer(pieces, each)
	s.corruptPiece = "piece-005"
	at, path := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "sleep"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	s.onAsk = func(requests int) {
		if requests == 12 {
			kill()
		}
	}
	server := httptest.NewServer(s)
	defer server.Close()
	runs := func(ctx context.Context) (string, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", guideScript(t)) //nolint:gosec // the guide's
		cmd.Env = append(os.Environ(), "FROM="+server.URL, "AT="+at, "PATH="+path+":"+os.Getenv("PATH"))
		cmd.WaitDelay = 5 * time.Minute // the curl of a killed run ends before the next run
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := runs(ctx); err == nil {
		t.Fatalf("it was not killed:\n%s", out)
	}
	for n := range 2 { // the second run finds everything
		s.mu.Lock()
		requested := s.asked
		s.mu.Unlock()
		if out, err := runs(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		s.mu.Lock()
		if n == 1 && s.asked != requested {
			t.Errorf("%d requests for pieces that are there", s.asked-requested)
		}
		s.mu.Unlock()
	}
	for name, want := range s.pieces {
		if got, err := os.ReadFile(filepath.Join(at, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is another one: %v", name, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := (pieces+1)*each + 100_000; s.sent > limit {
		t.Errorf("%d bytes were sent, want %d at most", s.sent, limit)
	}
	t.Logf("%d bytes of %d in %d requests", s.sent, pieces*each, s.asked)
}
