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

// RunToEnd waits for the program. A nonzero exit code is no error. started, if not nil, is called
// after the start.
func RunToEnd(ctx context.Context, started func(*os.Process), path string, args ...string) (Output, error) {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // a program of ours
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	cmd.WaitDelay = time.Minute
	err := cmd.Start()
	if err == nil && started != nil {
		started(cmd.Process)
	}
	if err == nil {
		err = cmd.Wait()
	}
	of := Output{Stdout: out.String(), Stderr: stderr.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		of.Code, err = exit.ExitCode(), nil
	}
	return of, err
}
