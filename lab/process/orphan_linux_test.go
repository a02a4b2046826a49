// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestNoChildOutlivesItsParent(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0], roleParent, t.TempDir())
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for lines := bufio.NewScanner(out); len(pids) < 2 && lines.Scan(); {
		pids = append(pids, lines.Text())
	}
	if len(pids) != 2 || !isAlive(pids[0]) || !isAlive(pids[1]) {
		t.Fatalf("children %v are not there", pids)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed above
	for deadline := time.Now().Add(5 * time.Minute); isAlive(pids[0]) || isAlive(pids[1]); {
		if time.Now().After(deadline) {
			t.Fatalf("children %v live: %v %v", pids, isAlive(pids[0]), isAlive(pids[1]))
		}
		time.Sleep(5 * time.Millisecond) // real processes: poll for their end
	}
}

// Zombies do not count.
func isAlive(pid string) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", strings.TrimSpace(pid)))
	if err != nil {
		return false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 0 && string(fields[0]) != "Z"
}
