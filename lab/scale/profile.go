// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"
)

// ProfiledCommand is weirlab's command that runs the controller with Profiler.
const ProfiledCommand = "profiled-controller"

// ServeProfiles serves profiles of this process on a loopback address. A CPU profile starts at once.
func ServeProfiles(ctx context.Context, address string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		_ = listener.Close() // no connections
		return fmt.Errorf("%s is not loopback", address)
	}
	cpu, err := os.CreateTemp("", "weir-cpu-")
	if err != nil {
		return err
	}
	begin := func() error {
		if _, err := cpu.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := cpu.Truncate(0); err != nil {
			return err
		}
		return pprof.StartCPUProfile(cpu)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /begin", func(w http.ResponseWriter, _ *http.Request) {
		pprof.StopCPUProfile()
		if err := begin(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /cpu", func(w http.ResponseWriter, _ *http.Request) {
		pprof.StopCPUProfile()
		if _, err := cpu.Seek(0, io.SeekStart); err == nil {
			_, _ = io.Copy(w, cpu) // on error the profile is truncated
		}
	})
	mux.HandleFunc("GET /allocs", func(w http.ResponseWriter, _ *http.Request) {
		_ = pprof.Lookup("allocs").WriteTo(w, 0) // as above
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second, MaxHeaderBytes: 16 << 10}
	context.AfterFunc(ctx, func() {
		_ = server.Close() // the process is ending
		_ = os.Remove(cpu.Name())
	})
	go func() { _ = server.Serve(listener) }() // requests then fail
	return begin()
}

func (l *lab) startProfile(ctx context.Context) error {
	return l.requestProfiler(ctx, http.MethodPost, "begin", io.Discard)
}

func (l *lab) endProfile(ctx context.Context, dir, phase string) error {
	name := strings.NewReplacer(" ", "-", ",", "").Replace(phase)
	for _, kind := range []string{"cpu", "allocs"} {
		f, err := os.Create(filepath.Join(dir, name+"."+kind+".pprof")) //nolint:gosec // where the user wants it
		if err != nil {
			return err
		}
		err = l.requestProfiler(ctx, http.MethodGet, kind, f)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) requestProfiler(ctx context.Context, method, action string, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+l.profiles+"/"+action, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // already read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile %s: %s", action, resp.Status)
	}
	_, err = io.Copy(to, resp.Body)
	return err
}
