// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
)

// Result is what a program has printed, and its exit code.
type Result struct {
	Out, Err string
	Code     int
}

// Run runs a program to its end, which the context may bring about, and returns what it prints.
// The error is that of a program which did not end by itself. Not nil, meanwhile is called once
// it has started.
func Run(ctx context.Context, meanwhile func(*os.Process), path string, args ...string) (Result, error) {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // a program of ours
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Start()
	if err == nil && meanwhile != nil {
		meanwhile(cmd.Process)
	}
	if err == nil {
		err = cmd.Wait()
	}
	of := Result{Out: out.String(), Err: complaint.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		of.Code, err = exit.ExitCode(), nil
	}
	return of, err
}
