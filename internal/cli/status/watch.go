// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/ratelimit"
)

const watchInterval = 2 * time.Second

// Command implements weir status with the user's permissions.
type Command struct {
	API       client.Reader
	Namespace string // empty means all
	Out       io.Writer
	JSON      bool
	Color     bool // Out is a terminal with colors
	// Health is nil unless the health of members is to be read.
	Health HealthReader
}

// PrintReport prints the report and returns whether there is no problem.
func (c Command) PrintReport(ctx context.Context) (inSync bool, err error) {
	if err := CheckNamespace(ctx, c.API, c.Namespace); err != nil {
		return false, err
	}
	seen, err := ReadSnapshot(ctx, c.API, c.Namespace, time.Now())
	if err != nil {
		return false, err
	}
	if c.Health != nil {
		seen.ReadHealth(ctx, c.Health)
	}
	r := NewReport(seen)
	if c.JSON {
		return r.InSync, r.WriteJSON(c.Out)
	}
	return r.InSync, c.writeText(r)
}

// WatchReport prints the report, and again on every change, until ctx ends.
func (c Command) WatchReport(ctx context.Context) error {
	if err := CheckNamespace(ctx, c.API, c.Namespace); err != nil {
		return err
	}
	last := ""
	for {
		seen, err := ReadSnapshot(ctx, c.API, c.Namespace, time.Now())
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		r := NewReport(seen)
		if text := r.comparableText(); text != last {
			last = text
			if err := c.writeReport(r); err != nil {
				return err
			}
		}
		if ratelimit.Sleep(ctx, watchInterval) != nil {
			return nil
		}
	}
}

func (c Command) writeReport(r Report) error {
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(r)
	}
	if _, err := fmt.Fprintf(c.Out, "--- %s\n", r.At.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	return c.writeText(r)
}

func (c Command) writeText(r Report) error {
	if c.Color {
		return r.WriteColored(c.Out)
	}
	return r.WriteText(c.Out)
}

func (r Report) comparableText() string {
	r.At = time.Time{}
	text, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
