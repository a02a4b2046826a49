// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"weir.dev/weir/internal/lb/behavior"
)

// Admin returns the handler of the admin API under /_emu/. It has no authentication: serve it on a
// separate loopback listener.
func (e *Emulator) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_emu/healthz", func(w http.ResponseWriter, _ *http.Request) { replyOK(w, fields{"status": "ok"}) })
	mux.HandleFunc("GET /_emu/calls", e.adminCalls)
	mux.HandleFunc("DELETE /_emu/calls", func(w http.ResponseWriter, _ *http.Request) {
		e.ClearCalls()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /_emu/stats", func(w http.ResponseWriter, _ *http.Request) { replyOK(w, e.Stats()) })
	mux.HandleFunc("GET /_emu/snapshot", func(w http.ResponseWriter, _ *http.Request) {
		replyRaw(w, "application/json", e.Snapshot())
	})
	mux.HandleFunc("PUT /_emu/snapshot", handleReplace(e.Restore))
	mux.HandleFunc("GET /_emu/faults", func(w http.ResponseWriter, _ *http.Request) {
		replyRaw(w, "application/yaml", []byte(e.Faults()))
	})
	mux.HandleFunc("PUT /_emu/faults", handleReplace(func(body []byte) error { return e.SetFaults(string(body)) }))
	mux.HandleFunc("DELETE /_emu/faults", handleReplace(func([]byte) error { return e.SetFaults("") }))
	mux.HandleFunc("GET /_emu/probe", func(w http.ResponseWriter, _ *http.Request) {
		replyOK(w, fields{"rules": e.Flows(time.Time{}, time.Now())})
	})
	mux.HandleFunc("POST /_emu/probe", handleReplace(e.reportProbe))
	mux.HandleFunc("DELETE /_emu/probe", func(w http.ResponseWriter, _ *http.Request) {
		e.ResetFlows()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /_emu/health", handleReplace(e.reportHealth))
	mux.HandleFunc("GET /_emu/forwarding", func(w http.ResponseWriter, _ *http.Request) {
		replyOK(w, fields{"rules": e.ForwardingRules()})
	})
	mux.HandleFunc("POST /_emu/connections", e.adminConnect)
	mux.HandleFunc("GET /_emu/config", func(w http.ResponseWriter, _ *http.Request) { replyOK(w, e.currentConfig()) })
	mux.HandleFunc("PUT /_emu/config", handleReplace(e.updateConfig))
	return mux
}

// maxAdminBody is in bytes.
const maxAdminBody = 64 << 20

func handleReplace(with func([]byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxAdminBody))
		if err == nil {
			err = with(body)
		}
		if err != nil {
			replyBadRequest(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func replyBadRequest(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(encodeJSON(fields{"error": err.Error()}))
}

func replyOK(w http.ResponseWriter, v any) { replyRaw(w, "application/json", encodeJSON(v)) }

func replyRaw(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body)
}

func (e *Emulator) adminCalls(w http.ResponseWriter, req *http.Request) {
	keep, err := callFilters(req.URL.Query())
	if err != nil {
		replyBadRequest(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	_ = WriteCalls(w, e.Calls(keep...)) // a disconnected reader loses the rest
}

func callFilters(query url.Values) ([]func(Call) bool, error) {
	var keep []func(Call) bool
	for name := range query {
		value := query.Get(name)
		switch name {
		case "method":
			keep = append(keep, func(c Call) bool { return c.Method == value })
		case "kind":
			keep = append(keep, ByKind(Kind(value)))
		case "path":
			glob, err := compileGlob(value)
			if err != nil {
				return nil, fmt.Errorf("path: %w", err)
			}
			keep = append(keep, func(c Call) bool { return glob == nil || glob.MatchString(c.Path) })
		case "since":
			after, err := parseSince(value)
			if err != nil {
				return nil, err
			}
			keep = append(keep, after)
		default:
			return nil, fmt.Errorf("query parameter %q is unknown: use method, kind, path, since", name)
		}
	}
	return keep, nil
}

func parseSince(value string) (func(Call) bool, error) {
	if seq, err := strconv.ParseUint(value, 10, 64); err == nil {
		return func(c Call) bool { return c.Seq > seq }, nil
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return nil, fmt.Errorf("since: %q is neither a sequence number nor a time such as 2026-01-02T15:04:05Z", value)
	}
	return CalledSince(t), nil
}

type settings struct {
	Behavior     *behavior.Behavior `json:"behaviour,omitempty"`
	Latency      *Latency           `json:"latency,omitempty"`
	LatencyScale *float64           `json:"latencyScale,omitempty"`
}

func (e *Emulator) currentConfig() settings {
	e.mu.Lock()
	defer e.mu.Unlock()
	return settings{Behavior: new(e.opts.Behavior), Latency: new(e.opts.Latency), LatencyScale: new(e.opts.LatencyScale)}
}

func (e *Emulator) updateConfig(body []byte) error {
	var want settings
	if err := decodeStrict(body, &want); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if want == (settings{}) {
		return errors.New("config: nothing to change: set behaviour, latency or latencyScale")
	}
	before := e.currentConfig()
	if want.Latency != nil {
		if err := e.SetLatency(*want.Latency); err != nil {
			return err
		}
	}
	if want.LatencyScale != nil {
		if err := e.SetLatencyScale(*want.LatencyScale); err != nil {
			return errors.Join(err, e.SetLatency(*before.Latency))
		}
	}
	if want.Behavior != nil {
		return e.SetBehavior(*want.Behavior) // validated when decoded
	}
	return nil
}
