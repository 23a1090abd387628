package mem

// AllDevices lists the devices that hold segments or have a trace, ascending.
func (s *AllocatorSnapshot) AllDevices() []int {
	devices := s.Devices()
	for _, t := range s.Traces {
		at := 0
		for at < len(devices) && devices[at] < t.Device {
			at++
		}
		if at == len(devices) || devices[at] != t.Device {
			devices = append(devices[:at], append([]int{t.Device}, devices[at:]...)...)
		}
	}
	return devices
}
