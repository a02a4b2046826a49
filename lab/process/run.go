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

// Output is a program's output and exit code.
type Output struct {
	Stdout, Stderr string
	Code           int
}

// RunToEnd runs a program until it exits or the context is done. The error is nil for a nonzero exit
// code. meanwhile, if not nil, is called once the program has started.
func RunToEnd(ctx context.Context, meanwhile func(*os.Process), path string, args ...string) (Output, error) {
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
	of := Output{Stdout: out.String(), Stderr: complaint.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		of.Code, err = exit.ExitCode(), nil
	}
	return of, err
}
