// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/sleep"
)

const every = 2 * time.Second

// Command implements weir status with the user's permissions.
type Command struct {
	API       client.Reader
	Namespace string // empty means all
	Out       io.Writer
	JSON      bool
}

// Show prints the report and returns whether there is no problem.
func (d Command) Show(ctx context.Context) (level bool, err error) {
	seen, err := Read(ctx, d.API, d.Namespace, time.Now())
	if err != nil {
		return false, err
	}
	r := Judge(seen)
	if d.JSON {
		return r.Level, r.JSON(d.Out)
	}
	return r.Level, r.Text(d.Out)
}

// Watch prints the report, and again on every change, until ctx ends.
func (d Command) Watch(ctx context.Context) error {
	last := ""
	for {
		seen, err := Read(ctx, d.API, d.Namespace, time.Now())
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		r := Judge(seen)
		if is := r.changes(); is != last {
			last = is
			if err := d.print(r); err != nil {
				return err
			}
		}
		if sleep.For(ctx, every) != nil {
			return nil
		}
	}
}

func (d Command) print(r Report) error {
	if d.JSON {
		return json.NewEncoder(d.Out).Encode(r)
	}
	if _, err := fmt.Fprintf(d.Out, "--- %s\n", r.At.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	return r.Text(d.Out)
}

func (r Report) changes() string {
	r.At = time.Time{}
	text, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
