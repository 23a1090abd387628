package sampler

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hightide/internal/mem"
	"hightide/internal/sampler/nvml"
	"hightide/internal/system"
)

// nvidia asks a helper process, which can load NVIDIA's library where we, being linked statically,
// cannot (docs/decisions/nvml.md). A question is sent at each Sample and the answer taken at a later
// one, so a slow driver delays nothing.
type nvidia struct {
	gpus    []mem.GPU // these two are set before ready is closed, and gpus never again
	problem error
	ready   chan struct{}

	program  *exec.Cmd
	stdin    io.WriteCloser
	answers  chan nvmlAnswer // one at most is on its way
	asked    bool
	readings []Reading
}

// nvmlAnswer is one answer of the helper; its words are listed in nvml/src/nvml.c.
type nvmlAnswer struct {
	driver  string
	gpus    []mem.GPU
	time    int64
	values  []nvmlValue
	notes   []string
	problem string
}

// nvmlValue is one figure of one device; pid is 0 where it concerns the device.
type nvmlValue struct {
	device int
	pid    int
	name   mem.Quantity
	value  int64
}

// helperPatience is how long Devices waits for the driver, which may have to wake all devices.
const helperPatience = 5 * time.Second

// openNVIDIA starts the helper where the driver is loaded. In WSL 2 Windows has it, and lends its library.
func openNVIDIA(root string) Vendor {
	libraries, lent := os.Getenv("LD_LIBRARY_PATH"), filepath.Join(root, "usr/lib/wsl/lib")
	switch {
	case exists(filepath.Join(root, "dev/nvidiactl")) || exists(filepath.Join(root, "proc/driver/nvidia/version")):
	case exists(filepath.Join(root, "dev/dxg")) && exists(filepath.Join(lent, "libnvidia-ml.so.1")):
		libraries = strings.TrimPrefix(libraries+":"+lent, ":")
	default:
		return nil
	}
	image, ok := nvml.Program()
	if !ok {
		image = nil
	}
	return startNVIDIA(image, libraries)
}

// startNVIDIA starts the helper and does not wait for it.
func startNVIDIA(image []byte, libraries string) *nvidia {
	v := &nvidia{answers: make(chan nvmlAnswer, 1), ready: make(chan struct{})}
	if err := v.start(image, libraries); err != nil {
		v.problem = err
		close(v.ready)
	}
	return v
}

func (v *nvidia) start(image []byte, libraries string) error {
	if image == nil {
		return errors.New("this hightide was built without its NVML helper (make -C internal/sampler/nvml)")
	}
	file, err := system.MemoryFile("hightide-nvml", image)
	if err != nil {
		return fmt.Errorf("put the NVML helper into memory: %w", err)
	}
	defer file.Close()
	c := exec.Command("/proc/self/fd/3")
	c.Args = []string{"hightide-nvml"}
	c.ExtraFiles = []*os.File{file}
	c.Env = []string{"LD_LIBRARY_PATH=" + libraries} // and no LD_PRELOAD
	c.SysProcAttr = system.OwnGroup()                // a Ctrl-C is meant for the training
	if v.stdin, err = c.StdinPipe(); err != nil {
		return err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start the NVML helper: %w", err)
	}
	v.program = c
	go v.listen(stdout)
	return nil
}

// listen takes the first answer and hands over all others, until the helper ends.
func (v *nvidia) listen(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	answer, ok := readAnswer(lines)
	switch {
	case !ok:
		v.problem = errors.New("the NVML helper ended before it answered")
	case answer.problem != "":
		v.problem = errors.New(answer.problem)
	}
	v.gpus = answer.gpus
	for i := range v.gpus {
		v.gpus[i].Driver = answer.driver
	}
	close(v.ready)
	for ok {
		if answer, ok = readAnswer(lines); ok {
			v.answers <- answer
		}
	}
	close(v.answers)
}

// readAnswer reads lines up to "end"; false at the end of the stream.
func readAnswer(lines *bufio.Scanner) (answer nvmlAnswer, ok bool) {
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "end":
			return answer, true
		case "driver":
			answer.driver = rest
		case "error":
			answer.problem = rest
		case "note":
			answer.notes = append(answer.notes, rest)
		case "sample":
			answer.time = number([]byte(rest))
		case "gpu":
			if f := strings.SplitN(rest, " ", 4); len(f) == 4 {
				index, _ := strconv.Atoi(f[0])
				gpu := mem.GPU{Index: index, Vendor: "NVIDIA", UUID: f[1], Name: f[3]}
				if bytes := number([]byte(f[2])); bytes > 0 {
					gpu.Memory = mem.Some(bytes)
				}
				answer.gpus = append(answer.gpus, gpu)
			}
		default:
			if value, ok := parseNVML(word, strings.Fields(rest)); ok {
				answer.values = append(answer.values, value)
			}
		}
	}
	return answer, false
}

// parseNVML turns "used 0 123" into a value in the units of mem/series.go.
func parseNVML(word string, fields []string) (v nvmlValue, ok bool) {
	var numbers []int64
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n < 0 {
			return v, false
		}
		numbers = append(numbers, n)
	}
	name, scale := mem.Quantity(""), int64(1)
	switch {
	case word == "process" && len(numbers) == 3:
		return nvmlValue{int(numbers[0]), int(numbers[1]), mem.SeriesDeviceProcess, numbers[2]}, true
	case len(numbers) != 2:
		return v, false
	case word == "used":
		name = mem.SeriesDeviceUsed
	case word == "util":
		name, scale = mem.SeriesDeviceUtilisation, 10 // percent to thousandths
	case word == "temp":
		name = mem.SeriesDeviceTemperature
	case word == "power":
		name = mem.SeriesDevicePower
	default:
		return v, false
	}
	if numbers[1] > (1<<63-1)/scale {
		return v, false
	}
	return nvmlValue{int(numbers[0]), 0, name, numbers[1] * scale}, true
}

func (v *nvidia) Name() string { return "NVIDIA" }

func (v *nvidia) Devices() []mem.GPU {
	select {
	case <-v.ready:
		return v.gpus
	case <-time.After(helperPatience):
		return nil
	}
}

// HelperPid is the helper's, so that it is not taken for a part of the training.
func (v *nvidia) HelperPid() int {
	if v.program == nil {
		return 0
	}
	return v.program.Process.Pid
}

// Sample hands out the answer to an earlier question, if it came, and asks again.
func (v *nvidia) Sample(live []*Process) ([]Reading, error) {
	v.readings = v.readings[:0]
	select {
	case <-v.ready:
	default:
		return nil, nil // the driver is still waking its devices
	}
	if v.problem != nil {
		return nil, v.problem
	}
	var note error
	select {
	case answer, ok := <-v.answers:
		if !ok {
			v.problem = errors.New("the NVML helper ended")
			return nil, v.problem
		}
		v.asked = false
		note = v.attribute(answer, live)
	default:
	}
	if !v.asked {
		v.asked = true
		if _, err := v.stdin.Write([]byte{'?'}); err != nil {
			v.problem = fmt.Errorf("the NVML helper ended: %w", err)
			return v.readings, v.problem
		}
	}
	return v.readings, note
}

// attribute turns an answer into readings; processes that are none of ours are left out.
func (v *nvidia) attribute(answer nvmlAnswer, live []*Process) error {
	strangers := 0
	for _, value := range answer.values {
		r := Reading{Device: "nvidia:" + strconv.Itoa(value.device), Name: value.name, Time: answer.time, Value: value.value}
		if value.pid == 0 {
			v.readings = append(v.readings, r)
			continue
		}
		for _, p := range live {
			if p.PID == value.pid {
				r.Process = p
				v.add(r)
			}
		}
		if r.Process == nil && errors.Is(system.Kill(value.pid, 0), syscall.ESRCH) {
			strangers++
		}
	}
	if len(answer.notes) > 0 {
		return errors.New(answer.notes[0])
	}
	if strangers > 0 {
		return errors.New("the driver numbers processes as the host does and this container does not: what each process " +
			"holds is not seen")
	}
	return nil
}

// add keeps the larger where a process both computes and draws on a device.
func (v *nvidia) add(r Reading) {
	for i, old := range v.readings {
		if old.Process == r.Process && old.Device == r.Device {
			v.readings[i].Value = max(old.Value, r.Value)
			return
		}
	}
	v.readings = append(v.readings, r)
}

// Close ends the helper: it reads the end of its input. One that hangs in the driver is killed.
func (v *nvidia) Close() {
	if v.program == nil {
		return
	}
	v.stdin.Close()
	ended := make(chan struct{})
	go func() { v.program.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(200 * time.Millisecond):
		v.program.Process.Kill() // a process stuck in the kernel goes when the driver lets it
	}
}
