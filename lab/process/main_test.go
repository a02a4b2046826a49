// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary also plays the child processes.
const (
	roleStubborn = "role:stubborn" // ends only by SIGKILL
	roleObliging = "role:obliging" // ends when standard input closes
	roleFailing  = "role:failing"  // prints a line and fails
	roleParent   = "role:parent"   // starts the first two in a folder and waits
)

// lifetime is longer than any test, so no test mistakes an end by itself, and nothing is left behind.
const lifetime = 20 * time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleStubborn:
			signal.Ignore(syscall.SIGTERM, os.Interrupt)
			fmt.Println("stubborn")
			time.Sleep(lifetime)
			os.Exit(0)
		case roleObliging:
			fmt.Println("obliging")
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		case roleFailing:
			fmt.Fprintln(os.Stderr, "no such thing")
			os.Exit(3)
		case roleParent:
			runParent(os.Args[2])
		}
	}
	goleak.VerifyTestMain(m)
}

func runParent(dir string) {
	runtime.LockOSThread()
	for _, role := range []string{roleStubborn, roleObliging} {
		c, err := StartCommand(context.Background(), Command{Dir: dir, Name: role[len("role:"):], Path: os.Args[0], Args: []string{role}})
		if err == nil {
			_, err = c.FirstLine(context.Background())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(c.ProcessID())
	}
	time.Sleep(lifetime)
	os.Exit(0)
}
