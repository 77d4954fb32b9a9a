package sandbox

import (
	"fmt"
	"slices"
	"strconv"
)

// Conditions returns the conditions that were asked for, and those that every
// sandbox is meant to hold.
func (s *Sandbox) Conditions() []Condition { return slices.Clone(s.conditions) }

// judge says of each condition that was asked for whether it holds.
func (s *Sandbox) judge(first ready, mapped bool) []Condition {
	o := &s.options
	var all []Condition
	add := func(asked bool, name, detail string) {
		if !asked {
			return
		}
		why := first.Missing[name]
		if why == "" {
			why = s.limits.missing[name]
		}
		if why != "" {
			detail = why
		}
		all = append(all, Condition{Name: name, Held: why == "", Detail: detail})
	}
	user := fmt.Sprintf("uid %d", o.User)
	if mapped {
		user += ", a number only: this machine's files stay the caller's"
	}
	confined := "all but /tmp, /var/tmp, /run and /dev/shm is mounted read-only"
	if first.Landlock > 0 {
		confined += fmt.Sprintf("; Landlock version %d", first.Landlock)
	}
	if first.Missing[ConfinedWrites] != "" {
		confined += "; without Landlock: " + first.Missing[ConfinedWrites]
		delete(first.Missing, ConfinedWrites) // the mounts hold by themselves
	}
	if why := first.Missing[MemoryLimit]; why != "" {
		s.limits.fallBack(why)
	}
	add(true, OwnNetwork, "own address "+address)
	add(true, ReadOnlySubmission, "at "+o.At)
	add(o.NoExec, NoExecSubmission, "at "+o.At)
	add(true, SmallShared, o.SharedMemory.describe())
	add(true, SmallTemp, o.Temp.describe())
	add(true, CleanEnvironment, "only the given variables")
	add(o.User != 0, AnotherUser, user)
	add(o.Memory > 0, MemoryLimit, s.limits.memoryDetail)
	add(o.CPUs > 0, CPULimit, s.limits.cpuDetail)
	add(true, NoPrivilege, "mount, ptrace, new namespaces and the like answer EPERM")
	add(true, ConfinedWrites, confined)
	add(o.GPU, GPUDevices, "/dev/nvidia*")
	add(true, Traced, "seccomp user notification")
	return all
}

func (v Volume) describe() string {
	text := bytesText(v.Bytes)
	if v.NoExec {
		text += ", noexec"
	}
	if v.ReadOnly {
		text += ", read-only"
	}
	return text
}

func bytesText(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
